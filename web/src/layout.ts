// Which part of the window the panels leave for the picture.

import type { FreeArea } from "./view";

const NARROW = 900; // [px]; below this the side panel lies at the bottom (style.css has the same number)
const SMALLEST = 160; // [px]; a picture needs at least this

export function freeArea(): FreeArea {
  const { innerWidth: width, innerHeight: height } = window;
  const box = (id: string) => document.getElementById(id)?.getBoundingClientRect();
  const top = box("header")?.bottom ?? 0;
  const tools = box("tools");
  const bars = [box("transport")?.top ?? height, tools !== undefined && tools.height > 0 ? tools.top : height];
  const bottom = Math.min(...bars, height);
  // Beside it when there is room, above it when there is not.
  if (width < NARROW) return { left: 0, top, width, height: Math.max(SMALLEST, bottom - top) };
  const left = document.querySelector<HTMLDetailsElement>("#guide details")?.open === true ? (box("guide")?.right ?? 0) : 0;
  const right = box("side")?.left ?? width;
  return { left, top, width: Math.max(SMALLEST, right - left), height: Math.max(SMALLEST, bottom - top) };
}
