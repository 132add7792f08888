// Which part of the window the panels leave for the picture, and what the panels tell about themselves to the style.

import { part } from "./opening";
import type { FreeArea } from "./view";

const NARROW = 900; // [px]; below this the side panel lies at the bottom (style.css has the same number)
const SMALLEST = 160; // [px]; a picture needs at least this
const LEAST = 240; // [px]; with less beside it, the result of a trial lies over the picture

/** Where it is; nothing of what is not shown. */
function seen(element: Element | null): DOMRect | undefined {
  const box = element?.getBoundingClientRect();
  return box !== undefined && box.height > 0 ? box : undefined;
}

export function freeArea(): FreeArea {
  const { innerWidth: width, innerHeight: height } = window;
  const box = (id: string) => seen(document.getElementById(id));
  const top = box("header")?.bottom ?? 0;
  const compared = document.body.classList.contains("compared");
  const bottom = Math.min(box("transport")?.top ?? height, box("tools")?.top ?? height, compared ? (box("side")?.top ?? height) : height);
  // Beside it when there is room, above it when there is not.
  if (width < NARROW || compared) return { left: 0, top, width, height: Math.max(SMALLEST, bottom - top) };
  const left = document.querySelector<HTMLDetailsElement>("#guide details")?.open === true ? (box("guide")?.right ?? 0) : 0;
  const right = box("side")?.left ?? width;
  return { left, top, width: Math.max(SMALLEST, right - left), height: Math.max(SMALLEST, bottom - top) };
}

/** What is left of it for the view below the bar of a recording, and in narrow windows below that of a drill. */
function belowBars(area: FreeArea): FreeArea {
  const bars = ["#watch", ...(window.innerWidth < NARROW ? [".drill-bar"] : [])];
  const below = Math.max(...bars.map((one) => seen(document.querySelector(one))?.bottom ?? 0)) - area.top;
  return below > 0 && area.height - below >= SMALLEST ? { ...area, top: area.top + below, height: area.height - below } : area;
}

/** What is left of it for the view beside or below the result of a trial: what was hidden is shown there. Bars stay where they are. */
export function besideCards(whole: FreeArea): FreeArea {
  const area = belowBars(whole);
  const result = seen(document.querySelector(".drill-result"));
  if (result === undefined) return area;
  const [right, bottom] = [area.left + area.width, area.top + area.height];
  const left = Math.max(area.left, result.right);
  if (right - left >= LEAST) return { ...area, left, width: right - left };
  return bottom - result.bottom >= SMALLEST && window.innerWidth < NARROW ? { ...area, top: result.bottom, height: bottom - result.bottom } : area;
}

/** What is left of it for the view while second pictures stand beside it; shown.css has the same numbers. */
export function besidePictures({ left, top, width, height }: FreeArea): FreeArea {
  if (width >= height) return { left, top, width: 0.5 * width, height };
  return { left, top: top + 0.5 * height, width, height: 0.5 * height };
}

/** The bars lie in the middle of it, and the mark of the focus in its corners. */
export function tellStyle({ left, top, width, height }: FreeArea): void {
  const { style } = document.documentElement;
  document.documentElement.classList.toggle("upright", height > width);
  const sides = { left, top, right: window.innerWidth - left - width, bottom: window.innerHeight - top - height };
  for (const [side, pixels] of Object.entries(sides)) style.setProperty(`--free-${side}`, `${Math.max(0, pixels).toFixed(0)}px`);
}

/** Classes `scrolled` and `more` while there is something above and below of what is seen. */
export function markScroll(element: HTMLElement): void {
  const pinned = element.querySelector<HTMLElement>(".pinned");
  const mark = () => {
    // What is scrolled to comes below what stays.
    element.style.scrollPaddingTop = `${(pinned?.offsetHeight ?? 0) + 12}px`;
    element.classList.toggle("scrolled", element.scrollTop > 1);
    element.classList.toggle("more", element.scrollHeight - element.scrollTop - element.clientHeight > 4);
  };
  element.addEventListener("scroll", mark, { passive: true });
  const observer = new ResizeObserver(mark);
  const watch = () => {
    for (const child of element.querySelectorAll(".card")) observer.observe(child);
  };
  observer.observe(element);
  new MutationObserver(watch).observe(element, { childList: true, subtree: true });
  watch();
}

/** Who clicks a button with the pointer goes on with the instrument: space and arrows are the hand's again. */
export function giveFocusBack(canvas: HTMLCanvasElement): void {
  document.addEventListener("click", ({ detail, target }) => {
    const byPointer = detail > 0; // the keyboard's clicks count none
    if (byPointer && target instanceof Element && target.closest("button, summary") !== null) canvas.focus({ preventScroll: true });
  });
}

/** Calls `fit` now and whenever a part of the page takes more or less room. */
export function watchLayout(guide: HTMLElement, canvas: HTMLCanvasElement, fit: () => void): void {
  const observer = new ResizeObserver(fit);
  for (const id of ["view", "header", "guide", "side", "tools", "transport", "watch"]) observer.observe(part(id));
  for (const one of document.querySelectorAll(".drill-bar, .drill-result")) observer.observe(one);
  guide.addEventListener("toggle", fit);
  markScroll(part("side"));
  giveFocusBack(canvas);
  fit();
}
