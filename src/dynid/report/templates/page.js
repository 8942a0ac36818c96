"use strict";
// Theme, downloads, folds and print of a page.
(function (dynid) {
  const root = document.documentElement, button = document.getElementById("theme");
  const asked = window.matchMedia("(prefers-color-scheme: dark)"), given = /[?&]theme=(dark|light)\b/.exec(location.search);
  function dark() { return root.dataset.theme ? root.dataset.theme === "dark" : asked.matches; }
  function again() {
    if (button) { button.textContent = dark() ? "Light" : "Dark"; }
    if (dynid.redraw) { dynid.redraw(); }
    if (dynid.redrawRobot) { dynid.redrawRobot(); }
  }
  if (button) {
    button.hidden = false;
    button.addEventListener("click", function () { root.dataset.theme = dark() ? "light" : "dark"; again(); });
    button.textContent = dark() ? "Light" : "Dark";
  }
  asked.addEventListener("change", again);
  // A page inside the studio: with its theme, and at a place to which only this page scrolls, as `#place` would not.
  if (given) { root.dataset.theme = given[1]; again(); }
  const place = /[?&]at=([a-z]+)\b/.exec(location.search), seen = place && document.getElementById(place[1]);
  if (seen) { window.addEventListener("load", function () { window.scrollTo(0, seen.getBoundingClientRect().top + window.scrollY - 60); }); }
  const holder = document.getElementById("downloads");
  const files = holder ? JSON.parse(holder.textContent) : {};
  document.querySelectorAll("button[data-file]").forEach(function (one) {
    one.hidden = false;
    one.addEventListener("click", function () { const file = files[one.dataset.file]; dynid.save(one.dataset.file, file.text, file.type); });
  });
  // The date of the file is not part of it: the same result has the same bytes.
  const written = document.getElementById("written");
  if (written) { written.textContent = document.lastModified.replace(/^(\d+)\/(\d+)\/(\d+)/, "$3-$1-$2"); }
  const all = document.getElementById("unfold");
  if (all) {
    all.hidden = false;
    all.addEventListener("click", function () {
      // Long tables and further plots stay folded: unfolded one by one, they are found again.
      const folds = Array.from(document.querySelectorAll("main details.question, main details:not(.behind):not(.long)")), open = folds.some(function (one) { return !one.open; });
      folds.forEach(function (one) { one.open = open; });
      all.textContent = open ? "Fold sections" : "Unfold sections";
    });
  }
  // A link into a folded section opens it.
  function open() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let one = target; one; one = one.parentElement) { if (one.tagName === "DETAILS") { one.open = true; } }
    if (target) { const fold = target.querySelector(":scope > details"); if (fold) { fold.open = true; } target.scrollIntoView(); }
  }
  window.addEventListener("hashchange", open);
  if (location.hash) { open(); }
  let folded = [], theme;
  window.addEventListener("beforeprint", function () {
    folded = Array.from(document.querySelectorAll("main details:not([open]):not(.behind):not(.long)"));
    theme = root.dataset.theme; root.dataset.theme = "light";
    folded.forEach(function (one) { one.open = true; });
    document.body.classList.add("printing"); // as narrow as the paper, so that labels keep their size
    if (dynid.drawAll) { dynid.drawAll(); }
    if (dynid.redrawRobot) { dynid.redrawRobot(); }
  });
  window.addEventListener("afterprint", function () {
    folded.forEach(function (one) { one.open = false; });
    document.body.classList.remove("printing");
    if (dynid.drawAll) { dynid.drawAll(); }
    if (theme) { root.dataset.theme = theme; } else { delete root.dataset.theme; }
    again();
  });
})(window.dynid = window.dynid || {});
