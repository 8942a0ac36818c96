
"use strict";
(function () {
  const options = {
    responsive: true, displaylogo: false, plotlyServerURL: "",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"]
  };
  const plots = [];
  document.querySelectorAll("script.figure").forEach(function (holder) {
    const target = document.getElementById(holder.dataset.target);
    const spec = JSON.parse(holder.textContent);
    Plotly.newPlot(target, spec.data, spec.layout, options);
    plots.push(target);
  });
  // paper is narrower than the window: draw again at its width, then back
  window.addEventListener("beforeprint", function () {
    plots.forEach(function (plot) { Plotly.relayout(plot, { width: 690, autosize: false }); });
  });
  window.addEventListener("afterprint", function () {
    plots.forEach(function (plot) { Plotly.relayout(plot, { width: null, autosize: true }); });
  });
})();
