// Looks every few seconds whether the page has changed and puts in place what is new. Without it pages only stand still.
"use strict";

const EVERY_MS = 4000;
let tag = null;
let seen = parts(document);

function parts(page) {
  const main = page.querySelector("main");
  return main ? Array.from(main.children, (child) => child.outerHTML) : [];
}

function isBusy(element) {
  const selection = document.getSelection();
  return element.contains(document.activeElement) || (selection && !selection.isCollapsed && selection.containsNode(element, true));
}

function keepState(old, fresh) {
  const before = old.querySelectorAll("details, .scroll");
  fresh.querySelectorAll("details, .scroll").forEach((element, place) => {
    if (!before[place]) return;
    if (before[place].open) element.open = true;
    element.scrollLeft = before[place].scrollLeft;
  });
}

function show(page) {
  const main = document.querySelector("main");
  const fresh = Array.from(page.querySelector("main").children);
  const now = parts(page);
  let changed = 0;
  if (fresh.length !== main.children.length) {
    if (isBusy(main)) return;
    main.replaceChildren(...fresh);
    changed = 1;
  } else {
    Array.from(main.children).forEach((old, place) => {
      if (now[place] === seen[place]) return;
      if (isBusy(old)) {
        now[place] = seen[place]; // its reader is at it: it is put in place later
        return;
      }
      old.replaceWith(fresh[place]);
      keepState(old, fresh[place]);
      changed += 1;
    });
  }
  seen = now;
  const stand = page.querySelector("#stand");
  const here = document.querySelector("#stand");
  if (stand && here && stand.textContent !== here.textContent) here.replaceWith(stand);
  document.title = page.title;
  return changed;
}

async function look() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { cache: "no-cache", headers: { Accept: "text/html" } });
    const found = answer.headers.get("ETag");
    if (!answer.ok || (found !== null && found === tag)) return;
    tag = found;
    show(new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch {
    // The explorer does not answer: what is shown stays, and the next look asks again.
  }
}

setInterval(look, EVERY_MS);
document.addEventListener("visibilitychange", look);
