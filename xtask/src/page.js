// Checks a page of `explain --emit html`, where `problems` is defined. xtask's page.rs inserts this after the page's
// own script.
"use strict";
addEventListener("load", () => {
  const expect = (holds, what) => holds || problems.push(what);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const columns = all(".column");
  const [header, ir, backend, asm] = columns;
  const find = (column, text) => all("[data-ir]", column).find((line) => line.textContent.includes(text));
  const common = (a, b) => a.dataset.ir.split(" ").some((number) => b.dataset.ir.split(" ").includes(number));
  const counterparts = (line, column) => all("[data-ir]", column).filter((other) => common(line, other));
  const colour = (line) => getComputedStyle(line).backgroundColor;
  const key = (target, name) => target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));

  const check = () => {
    expect(columns.length === 4, `${columns.length} columns`);
    for (const column of columns) {
      expect(all("li", column).length > 5 && column.querySelector("[data-ir]"), `no lines in ${column.dataset.stage}`);
      expect(all("[tabindex='0']", column).length === 1, `tab stops of ${column.dataset.stage}`);
    }

    // text isn't parsed as HTML
    const text = 'mode: str = "a<b & \\"c\\" </ol>"';
    expect(header.textContent.includes(text), `no ${text}`);
    const known = ["SECTION", "H2", "OL", "LI"];
    for (const element of all("main *")) expect(known.includes(element.tagName), `an element ${element.tagName}`);

    // a line of the IR has counterparts with its colour in the backend's IR and in the machine code
    const call = find(ir, "call @saxpy_kernel");
    const [inBackend, inAsm] = [backend, asm].map((column) => counterparts(call, column));
    expect(inBackend.some((line) => line.textContent.includes("call")), "the call in the backend's IR");
    const code = inAsm.map((line) => line.textContent).join();
    expect(code.includes("call") && code.includes("saxpy_kernel"), `the call in the machine code: ${code}`);
    const other = all("[data-ir]", ir)[0];
    for (const line of [...inBackend, ...inAsm]) expect(colour(line) === colour(call), "another colour");
    expect(colour(call) !== colour(other) && colour(call) !== colour(ir), "no colour of its own");

    // hovering over a line shows them, and a click keeps them
    const together = [call, ...inBackend, ...inAsm];
    const marked = (name) => all(`.${name}`);
    const params = counterparts(call, header);
    expect(params.length === 4, `${params.length} parameters belong to the call`);
    const same = (lines) => lines.length === together.length + 4 && together.every((line) => lines.includes(line));
    call.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
    expect(same(marked("near")), "the mouse shows no counterparts");
    document.body.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
    expect(marked("near").length === 0, "the mouse is gone");
    asm.scrollTop = asm.scrollHeight;
    call.click();
    expect(same(marked("kept")), "a click keeps no counterparts");
    expect(all("[aria-selected=true]").length === marked("kept").length, "aria-selected");
    expect(document.activeElement === call, "a click takes no focus");
    const [inner, outer] = [inAsm[0].getBoundingClientRect(), asm.getBoundingClientRect()];
    expect(inner.top >= outer.top && inner.bottom <= outer.bottom, "the counterpart is out of sight");
    key(call, "Escape");
    expect(marked("kept").length === 0, "Escape keeps lines");

    // the keyboard
    key(call, "ArrowRight");
    expect(document.activeElement === inBackend[0], "to the right");
    key(document.activeElement, "ArrowRight");
    expect(document.activeElement === inAsm[0], "to the right again");
    key(document.activeElement, "ArrowDown");
    expect(document.activeElement.closest(".column") === asm && document.activeElement !== inAsm[0], "down");
    key(document.activeElement, "ArrowUp");
    key(document.activeElement, "Enter");
    expect(marked("kept").includes(call), "Enter keeps no counterparts");

    // a parameter has the loads of its argument as counterparts
    const factor = find(header, "a: float32");
    const loads = counterparts(factor, ir).map((line) => line.textContent).filter((code) => code.includes("load."));
    expect(loads.some((code) => code.endsWith("v1+8")) && !loads.some((code) => code.endsWith("v1+24")), `${loads}`);

    // columns are side by side, or in a narrow window stacked
    const boxes = columns.map((column) => column.getBoundingClientRect());
    const stacked = boxes.every((box, i) => i === 0 || box.top >= boxes[i - 1].bottom - 1);
    const beside = boxes.every((box, i) => i === 0 || (box.left >= boxes[i - 1].right - 1 && box.top === boxes[0].top));
    expect(innerWidth < 960 ? stacked : beside, `boxes at ${innerWidth}: ${JSON.stringify(boxes)}`);
    expect(document.documentElement.scrollWidth <= innerWidth, "the page is wider than the window");
    for (const column of columns) {
      expect(column.scrollHeight <= column.clientHeight || getComputedStyle(column).overflowY === "auto", "no scrolling");
    }

    // the contrast of the text with every line background is sufficient in either colour scheme
    const parts = (text) => text.match(/[\d.]+/g).map(Number);
    const luminance = (rgb) => {
      const linear = rgb.map((part) => part / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const page = parts(getComputedStyle(document.body).backgroundColor).slice(0, 3);
    const front = luminance(parts(getComputedStyle(document.body).color).slice(0, 3));
    for (const line of all("[data-n]")) {
      const [r, g, b, alpha = 1] = parts(colour(line));
      const back = luminance([r, g, b].map((part, i) => part * alpha + page[i] * (1 - alpha)));
      const contrast = (Math.max(front, back) + 0.05) / (Math.min(front, back) + 0.05);
      expect(contrast >= 4.5, `contrast ${contrast.toFixed(1)} of ${line.textContent}`);
    }
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.scheme = dark ? "dark" : "light";
    expect(luminance(page) < 0.5 === dark, "the page is of another colour scheme than the browser");

    const loaded = performance.getEntriesByType("resource");
    expect(loaded.length === 0, `loaded ${loaded.map((entry) => entry.name)}`);
  };
  try {
    check();
  } catch (error) {
    problems.push(`${error}\n${error.stack}`);
  }
  const result = document.createElement("pre");
  result.id = "problems";
  result.textContent = [...new Set(problems)].join("\n") || "none";
  document.body.append(result);
});
