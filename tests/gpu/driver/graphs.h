// The stand-in's model of graphs, by the rules of cuda.h. Part of driver.c.
//
// A launch of a graph runs its kernels in an order that its dependencies allow. Of several such orders it takes the one
// in which the nodes that were added last come first, so that a missing dependency shows.

#define MOST_GRAPHS 64
#define MOST_NODES 32

// The kernel that a node runs, with copies of the parameters.
struct work {
  struct kernel* kernel;
  struct extent grid, block;
  uint32_t shared;
  struct context* context;
  void* params[MOST_PARAMS];
  struct attribute attributes[8];
  uint32_t count;
};
struct graph;
struct node {
  struct graph* graph;
  int index;
  struct work work;
};
struct graph {
  int alive, count;
  struct node nodes[MOST_NODES];
  // before[i][j]: node i runs before node j.
  int before[MOST_NODES][MOST_NODES];
};
struct executable {
  int alive, count;
  struct graph* graph;
  struct work works[MOST_NODES];
  int enabled[MOST_NODES], order[MOST_NODES];
  // The thread that has changed it since the last launch.
  const void* user;
};
// CUDA_KERNEL_NODE_PARAMS
struct node_params {
  void* function;
  struct extent grid, block;
  uint32_t shared;
  void **params, **extra;
  struct kernel* kernel;
  struct context* context;
};

static struct graph graphs[MOST_GRAPHS];
static struct executable executables[MOST_GRAPHS];
static struct graph captured;
static __thread char this_thread;

static int is_graph(const struct graph* graph) { return graph >= graphs && graph < graphs + MOST_GRAPHS && graph->alive; }
static int is_executable(const struct executable* executable) {
  return executable >= executables && executable < executables + MOST_GRAPHS && executable->alive;
}
// Nodes are identified by their addresses in a graph, which must be alive.
static int is_node(const struct node* node) { return node && is_graph(node->graph) && node->index < node->graph->count; }

static void drop_params(struct work* work) {
  for (int i = 0; i < MOST_PARAMS; i++) {
    if (work->params[i]) free_aligned(work->params[i]);
    work->params[i] = NULL;
  }
}
static void copy_params(struct work* work, void** params) {
  drop_params(work);
  for (int i = 0; work->kernel->facts.sizes[i]; i++) {
    work->params[i] = allocate_aligned(64, work->kernel->facts.sizes[i]);
    memcpy(work->params[i], params[i], work->kernel->facts.sizes[i]);
  }
}
// A copy that has its own parameters.
static void copy_work(struct work* to, const struct work* from) {
  void** params = (void**)from->params;
  *to = *from;
  memset(to->params, 0, sizeof to->params);
  copy_params(to, params);
}
static void run_work(struct work* work) {
  run_kernel(work->kernel, work->grid, work->block, work->shared, work->params, (int)(work->context - contexts));
}

static void drop_graph(struct graph* graph) {
  for (int i = 0; i < graph->count; i++) drop_params(&graph->nodes[i].work);
  memset(graph, 0, sizeof *graph);
}
static void drop_executable(struct executable* executable) {
  for (int i = 0; i < executable->count; i++) drop_params(&executable->works[i]);
  memset(executable, 0, sizeof *executable);
}
static void forget_graphs(void) {
  for (int i = 0; i < MOST_GRAPHS; i++) {
    drop_graph(&graphs[i]);
    drop_executable(&executables[i]);
  }
}
static int is_in_graph(const struct library* library) {
  for (int i = 0; i < MOST_GRAPHS; i++) {
    for (int j = 0; j < graphs[i].count; j++)
      if (graphs[i].alive && graphs[i].nodes[j].work.kernel->library == library) return 1;
    for (int j = 0; j < executables[i].count; j++)
      if (executables[i].alive && executables[i].works[j].kernel->library == library) return 1;
  }
  return 0;
}

// Functions with which tests control graphs. How many there are, executable ones included.
int standin_graphs(void) {
  int count = 0;
  for (int i = 0; i < MOST_GRAPHS; i++) count += graphs[i].alive + executables[i].alive;
  return count;
}
// Captures a stream: its launches don't run, and become the nodes of a graph.
void standin_begin_capture(void* stream) {
  drop_graph(&captured);
  captured_stream = stream;
  capturing = 1;
}
// Ends the capture; returns the number of captured launches.
int standin_end_capture(void) {
  captured_stream = NULL;
  capturing = 0;
  return captured.count;
}
// Runs what was captured.
void standin_replay(void) {
  for (int i = 0; i < captured.count; i++) run_work(&captured.nodes[i].work);
}
static int is_captured(const void* stream) { return captured_stream && stream == captured_stream; }
static void add_captured(struct kernel* kernel, const struct config* config, void** params, struct context* context) {
  if (captured.count == MOST_NODES) return;
  struct work* work = &captured.nodes[captured.count++].work;
  *work = (struct work){.kernel = kernel, .grid = config->grid, .block = config->block, .shared = config->shared, .context = context};
  copy_params(work, params);
}

// Why parameters of a node are refused, or SUCCESS.
static int refused(const struct node_params* params) {
  if (params->function || params->extra || !is_kernel(params->kernel)) return INVALID_VALUE;
  const struct context* context = params->context ? params->context : depth ? stack[depth - 1] : NULL;
  if (!context || context < contexts || context >= contexts + DEVICES || !context->retained) return INVALID_CONTEXT;
  const struct kernel* kernel = params->kernel;
  if (!fits(params->grid, params->block) || !is_required(kernel->facts.required_block, &params->block.x)) return INVALID_VALUE;
  if (kernel->library->cubin && !cubin_runs_on(kernel->library->cubin, (uint32_t)capability[context->device])) return NO_BINARY;
  return params->shared <= (uint32_t)most_dynamic(kernel, context->device) ? SUCCESS : INVALID_VALUE;
}
static void set_work(struct work* work, const struct node_params* params) {
  work->kernel = params->kernel;
  work->grid = params->grid;
  work->block = params->block;
  work->shared = params->shared;
  work->context = params->context ? params->context : stack[depth - 1];
  copy_params(work, params->params);
}
static void note_params(const struct node_params* params) {
  note("(%s, grid %u %u %u, block %u %u %u, shared %u", params->kernel->name, params->grid.x, params->grid.y, params->grid.z, params->block.x,
       params->block.y, params->block.z, params->shared);
}
// Whether a node runs before another one, by any number of dependencies.
static int runs_before(const struct graph* graph, int from, int to) {
  for (int i = 0; i < graph->count; i++)
    if (graph->before[from][i] && (i == to || runs_before(graph, i, to))) return 1;
  return 0;
}

int cuStreamIsCapturing(void* stream, int* is_capturing) {
  ENTER("cuStreamIsCapturing")
  REQUIRE((uintptr_t)stream > 2 || depth, INVALID_CONTEXT)
  REQUIRE(!captured_stream || (uintptr_t)stream > 1, CAPTURE_IMPLICIT)
  *is_capturing = captured_stream ? stream == captured_stream : capturing;
  note("\n");
  LEAVE
}
int cuGraphCreate(struct graph** graph, unsigned flags) {
  ENTER("cuGraphCreate")
  REQUIRE(flags == 0, INVALID_VALUE)
  *graph = NULL;
  for (int i = 0; i < MOST_GRAPHS && !*graph; i++)
    if (!graphs[i].alive) *graph = &graphs[i];
  REQUIRE(*graph, OUT_OF_MEMORY)
  (*graph)->alive = 1;
  note("\n");
  LEAVE
}
int cuGraphAddKernelNode(struct node** node, struct graph* graph, struct node** dependencies, uint64_t count, const struct node_params* params) {
  ENTER("cuGraphAddKernelNode")
  REQUIRE(is_graph(graph) && graph->count < MOST_NODES, INVALID_VALUE)
  REQUIRE(refused(params) == SUCCESS, refused(params))
  for (uint64_t i = 0; i < count; i++) REQUIRE(is_node(dependencies[i]) && dependencies[i]->graph == graph, INVALID_VALUE)
  struct node* new = &graph->nodes[graph->count];
  new->graph = graph;
  new->index = graph->count;
  set_work(&new->work, params);
  note_params(params);
  for (uint64_t i = 0; i < count; i++) {
    graph->before[dependencies[i]->index][new->index] = 1;
    note(", behind %d", dependencies[i]->index);
  }
  graph->count++;
  *node = new;
  note(")\n");
  LEAVE
}
int cuGraphKernelNodeSetAttribute(struct node* node, uint32_t id, const uint32_t* value) {
  ENTER("cuGraphKernelNodeSetAttribute")
  REQUIRE(is_node(node), INVALID_HANDLE)
  // those that cuda.h calls valid for graph nodes, and generated code has
  REQUIRE(id == 2 || id == 4 || id == 5 || id == 8 || id == 10 || id == 11, INVALID_VALUE)
  struct work* work = &node->work;
  REQUIRE(work->count < 8, OUT_OF_MEMORY)
  struct attribute* attribute = &work->attributes[work->count];
  attribute->id = id;
  memcpy(attribute->value, value, sizeof attribute->value);
  if (id == 4 || id == 11) {
    REQUIRE(value[0] && value[1] && value[2], INVALID_VALUE)
    REQUIRE(capability[work->context->device] >= 90, NOT_SUPPORTED)
    REQUIRE(value[0] * value[1] * value[2] <= (work->kernel->non_portable[work->context->device] ? 16 : 8), INVALID_VALUE)
    note("(attribute %u = %u %u %u)\n", id, value[0], value[1], value[2]);
  } else {
    note("(attribute %u = %d)\n", id, (int)value[0]);
  }
  work->count++;
  LEAVE
}
int cuGraphAddDependencies(struct graph* graph, struct node** from, struct node** to, uint64_t count) {
  ENTER("cuGraphAddDependencies")
  REQUIRE(is_graph(graph), INVALID_VALUE)
  for (uint64_t i = 0; i < count; i++) {
    REQUIRE(is_node(from[i]) && is_node(to[i]) && from[i]->graph == graph && to[i]->graph == graph, INVALID_VALUE)
    REQUIRE(!graph->before[from[i]->index][to[i]->index], INVALID_VALUE)
    REQUIRE(from[i] != to[i] && !runs_before(graph, to[i]->index, from[i]->index), INVALID_VALUE)
    graph->before[from[i]->index][to[i]->index] = 1;
    note("(%d, %d)", from[i]->index, to[i]->index);
  }
  note("\n");
  LEAVE
}
int cuGraphInstantiateWithFlags(struct executable** executable, struct graph* graph, uint64_t flags) {
  ENTER("cuGraphInstantiateWithFlags")
  REQUIRE(flags == 0 && is_graph(graph), INVALID_VALUE)
  *executable = NULL;
  for (int i = 0; i < MOST_GRAPHS && !*executable; i++)
    if (!executables[i].alive) *executable = &executables[i];
  REQUIRE(*executable, OUT_OF_MEMORY)
  struct executable* new = *executable;
  new->alive = 1;
  new->graph = graph;
  new->count = graph->count;
  int is_placed[MOST_NODES] = {0};
  for (int place = 0; place < graph->count; place++) {
    int next = -1;
    for (int i = 0; i < graph->count; i++) {
      int is_ready = !is_placed[i];
      for (int j = 0; j < graph->count; j++) is_ready = is_ready && (is_placed[j] || !graph->before[j][i]);
      if (is_ready) next = i;
    }
    is_placed[next] = 1;
    new->order[place] = next;
  }
  for (int i = 0; i < graph->count; i++) {
    copy_work(&new->works[i], &graph->nodes[i].work);
    new->enabled[i] = 1;
  }
  note("(%d)\n", graph->count);
  LEAVE
}
// Graphs aren't thread-safe: from the first change on, a thread has an executable graph alone until it launches it.
static int is_mine(struct executable* executable) {
  if (!executable->user) executable->user = &this_thread;
  return executable->user == &this_thread;
}
int cuGraphExecKernelNodeSetParams(struct executable* executable, struct node* node, const struct node_params* params) {
  ENTER("cuGraphExecKernelNodeSetParams")
  REQUIRE(is_executable(executable) && is_mine(executable), INVALID_VALUE)
  REQUIRE(is_node(node) && node->graph == executable->graph && node->index < executable->count, INVALID_VALUE)
  REQUIRE(refused(params) == SUCCESS, refused(params))
  struct work* work = &executable->works[node->index];
  // the context of a node can't change
  REQUIRE(!params->context || params->context == work->context, INVALID_VALUE)
  set_work(work, params);
  note_params(params);
  note(")\n");
  LEAVE
}
int cuGraphNodeSetEnabled(struct executable* executable, struct node* node, unsigned is_enabled) {
  ENTER("cuGraphNodeSetEnabled")
  REQUIRE(is_executable(executable) && is_mine(executable), INVALID_VALUE)
  REQUIRE(is_node(node) && node->graph == executable->graph && node->index < executable->count, INVALID_VALUE)
  executable->enabled[node->index] = is_enabled != 0;
  note("(%d, %u)\n", node->index, is_enabled);
  LEAVE
}
int cuGraphLaunch(struct executable* executable, void* stream) {
  ENTER("cuGraphLaunch")
  REQUIRE(is_executable(executable) && is_mine(executable), INVALID_VALUE)
  REQUIRE((uintptr_t)stream > 2 || depth, INVALID_CONTEXT)
  REQUIRE(!captured_stream || (uintptr_t)stream > 1, CAPTURE_IMPLICIT)
  // cuda.h allows this, but generated code must not do it: the nodes couldn't be updated any more
  REQUIRE(captured_stream ? stream != captured_stream : !capturing, CAPTURED)
  for (int i = 0; i < executable->count; i++) {
    const struct work* work = &executable->works[i];
    for (uint32_t j = 0; j < work->count && executable->enabled[i]; j++) {
      const struct attribute* attribute = &work->attributes[j];
      const uint32_t* value = attribute->value;
      if (attribute->id != 4 && attribute->id != 11) continue;
      REQUIRE(attribute->id != 4 || is_required(work->kernel->facts.required_cluster, value), INVALID_VALUE)
      REQUIRE(work->grid.x % value[0] == 0 && work->grid.y % value[1] == 0 && work->grid.z % value[2] == 0, INVALID_VALUE)
    }
  }
  executable->user = NULL;
  last_stream = stream;
  note("(");
  for (int place = 0, is_first = 1; place < executable->count; place++) {
    struct work* work = &executable->works[executable->order[place]];
    if (!executable->enabled[executable->order[place]]) continue;
    note("%s%s", is_first ? "" : ", ", work->kernel->name);
    is_first = 0;
    run_work(work);
  }
  note(")\n");
  LEAVE
}
int cuGraphExecDestroy(struct executable* executable) {
  ENTER("cuGraphExecDestroy")
  REQUIRE(!deinitialised, DEINITIALIZED)
  REQUIRE(is_executable(executable), INVALID_VALUE)
  drop_executable(executable);
  note("\n");
  LEAVE
}
int cuGraphDestroy(struct graph* graph) {
  ENTER("cuGraphDestroy")
  REQUIRE(!deinitialised, DEINITIALIZED)
  REQUIRE(is_graph(graph), INVALID_VALUE)
  drop_graph(graph);
  note("\n");
  LEAVE
}
