"use strict";
(() => {
  const columns = [...document.querySelectorAll(".column")];
  const lines = [...document.querySelectorAll("[data-ir]")];
  // the lines that belong to each line of the IR
  const groups = new Map();
  const numbers = (line) => line.dataset.ir.split(" ");
  for (const line of lines) {
    for (const number of numbers(line)) {
      if (!groups.has(number)) groups.set(number, []);
      groups.get(number).push(line);
    }
  }
  const counterparts = (line) => new Set(numbers(line).flatMap((number) => groups.get(number)));
  const columnOf = (line) => line.closest(".column");
  const lineOf = (event) => event.target.closest("[data-ir]");

  let near = new Set();
  const show = (line) => {
    for (const old of near) old.classList.remove("near");
    near = line ? counterparts(line) : new Set();
    for (const new_ of near) new_.classList.add("near");
  };

  let keptFrom = null;
  let kept = new Set();
  const keep = (line) => {
    for (const old of kept) {
      old.classList.remove("kept");
      old.setAttribute("aria-selected", "false");
    }
    keptFrom = line === keptFrom ? null : line;
    kept = keptFrom ? counterparts(keptFrom) : new Set();
    for (const new_ of kept) {
      new_.classList.add("kept");
      new_.setAttribute("aria-selected", "true");
    }
    if (keptFrom) reveal(keptFrom);
  };

  // scrolls every other column to its first counterpart
  const reveal = (line) => {
    for (const column of columns) {
      if (column === columnOf(line)) continue;
      const first = [...counterparts(line)].find((other) => columnOf(other) === column);
      if (!first) continue;
      const [inner, outer] = [first.getBoundingClientRect(), column.getBoundingClientRect()];
      if (inner.top < outer.top + 40 || inner.bottom > outer.bottom) {
        column.scrollTop += inner.top - outer.top - column.clientHeight / 3;
      }
    }
  };

  // Tab goes from column to column: one line of each takes the focus
  const stop = (line) => {
    for (const other of columnOf(line).querySelectorAll("[tabindex='0']")) other.tabIndex = -1;
    line.tabIndex = 0;
  };
  const focus = (line) => {
    if (!line) return;
    stop(line);
    line.focus();
  };
  for (const column of columns) {
    const first = column.querySelector("[data-ir]");
    if (first) stop(first);
  }
  const beside = (line, step) => {
    const among = lines.filter((other) => columnOf(other) === columnOf(line));
    return among[among.indexOf(line) + step];
  };
  const across = (line, step) => {
    const all = [...counterparts(line)];
    for (let i = columns.indexOf(columnOf(line)) + step; columns[i]; i += step) {
      const found = all.find((other) => columnOf(other) === columns[i]);
      if (found) return found;
    }
    return null;
  };

  document.addEventListener("mouseover", (event) => show(lineOf(event)));
  document.addEventListener("mouseleave", () => show(null));
  document.addEventListener("focusin", (event) => show(lineOf(event)));
  document.addEventListener("click", (event) => {
    const line = lineOf(event);
    if (!line || String(getSelection())) return;
    focus(line);
    keep(line);
  });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape") {
      keep(null);
      return;
    }
    const line = lineOf(event);
    const action = line && {
      Enter: () => keep(line),
      " ": () => keep(line),
      ArrowDown: () => focus(beside(line, 1)),
      ArrowUp: () => focus(beside(line, -1)),
      ArrowRight: () => focus(across(line, 1)),
      ArrowLeft: () => focus(across(line, -1)),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
})();
