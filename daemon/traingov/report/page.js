// What a pointer or the slider shows of the timeline. Without this script the page lacks nothing else.
"use strict";
(() => {
  const source = document.getElementById("spans");
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((d) => { d.open = true; }));
  if (source) {
    const spans = JSON.parse(source.textContent);
    const charts = document.querySelectorAll("svg[data-end]");
    const read = document.getElementById("read");
    const slider = document.getElementById("slide");
    const watts = (w) => (w === null ? "not read" : w.toFixed(2) + " W");
    const show = (t) => {
      let i = spans.findIndex((s) => t < s[0] + s[1]);
      if (i < 0) i = spans.length - 1;
      const [start, width, mean, least, most, mid, cap, low, high, batch] = spans[i];
      const clock = high === null ? "clock not read" : (low === high || low === null ? high : low + " to " + high) + " MHz";
      const band = mean === null ? "power not read" : `${watts(mean)} (${watts(least)} to ${watts(most)})`;
      read.textContent = `${start.toFixed(1)} to ${(start + width).toFixed(1)} s: ${band}; window mean at most ` +
        `${watts(mid)}; ${cap === null ? "no cap" : "cap " + cap + " W"}; ${clock}; batch ${batch}`;
      for (const chart of charts) {
        const d = chart.dataset;
        const x = +d.left + (t / +d.end) * (d.right - d.left);
        const cross = chart.querySelector(".cross");
        cross.setAttribute("transform", `translate(${x} 0)`);
        cross.setAttribute("visibility", "visible");
      }
    };
    for (const chart of charts) {
      chart.addEventListener("pointermove", (event) => {
        const box = chart.getBoundingClientRect(), d = chart.dataset;
        const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
        const t = Math.min(Math.max((x - d.left) / (d.right - d.left), 0), 1) * d.end;
        slider.value = String((1000 * t) / d.end);
        show(t);
      });
    }
    slider.addEventListener("input", () => show((slider.value / 1000) * charts[0].dataset.end));
  }
  document.documentElement.dataset.ready = "yes";
})();
