// Mouse, pen and touch. Left button presses or closes the handle, right button or a modifier orbits, the wheel goes along the shaft;
// one finger is the tool, two turn and zoom.

import type { Orbit } from "../orbit";
import type { Hand } from "./hand";
import type { ScreenPoint } from "./reach";

const TURN = 0.0075; // [rad] per pixel
const WHEEL = 0.001; // [m] per notch along the shaft
const NOTCH = 100; // wheel units in one notch, as browsers count pixels
const FINGER_WAIT = 140; // [ms] before one finger presses, in case a second comes

export function listenToPointer(canvas: HTMLCanvasElement, hand: Hand, orbit: Orbit): void {
  const touches = new Map<number, ScreenPoint>();
  let orbiting: ScreenPoint | null = null;
  let fingerTimer: ReturnType<typeof setTimeout> | undefined;

  const at = (event: MouseEvent): ScreenPoint => {
    const box = canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const wantsOrbit = (event: PointerEvent) => event.button !== 0 || event.altKey || event.shiftKey;

  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    if (event.pointerType === "touch") {
      touches.set(event.pointerId, at(event));
      clearTimeout(fingerTimer);
      if (touches.size > 1) {
        hand.withdraw();
        return;
      }
      hand.moveTo(at(event), event.timeStamp);
      fingerTimer = setTimeout(() => hand.use(1, event.timeStamp), FINGER_WAIT);
      return;
    }
    if (wantsOrbit(event)) {
      orbiting = at(event);
      canvas.classList.add("orbiting");
      return;
    }
    hand.moveTo(at(event), event.timeStamp);
    hand.use(1, event.timeStamp);
  });

  canvas.addEventListener("pointermove", (event) => {
    const point = at(event);
    if (touches.has(event.pointerId)) {
      if (touches.size === 1) hand.moveTo(point, event.timeStamp);
      else if (touches.size === 2) turnByFingers(touches, event.pointerId, point, orbit);
      touches.set(event.pointerId, point);
    } else if (orbiting !== null) {
      orbit.turn((orbiting.x - point.x) * TURN, (orbiting.y - point.y) * TURN);
      orbiting = point;
    } else {
      hand.moveTo(point, event.timeStamp);
    }
  });

  const lift = (event: PointerEvent) => {
    if (touches.delete(event.pointerId)) {
      clearTimeout(fingerTimer);
      hand.withdraw();
      return;
    }
    orbiting = null;
    canvas.classList.remove("orbiting");
    hand.release();
  };
  canvas.addEventListener("pointerup", lift);
  canvas.addEventListener("pointercancel", lift);
  canvas.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "touch" && !canvas.hasPointerCapture(event.pointerId)) hand.withdraw();
  });
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const pixels = event.deltaMode === 0 ? event.deltaY : event.deltaY * 33;
      // A browser turns the wheel sideways under Shift.
      const notches = (pixels === 0 ? event.deltaX : pixels) / NOTCH;
      if (event.altKey || event.shiftKey || event.ctrlKey) orbit.zoom(1.1 ** notches);
      else hand.push(-notches * WHEEL, event.timeStamp);
    },
    { passive: false },
  );
}

function turnByFingers(touches: Map<number, ScreenPoint>, moved: number, to: ScreenPoint, orbit: Orbit): void {
  const from = touches.get(moved);
  const other = [...touches].find(([id]) => id !== moved)?.[1];
  if (from === undefined || other === undefined) return;
  // Each finger carries half of the turn, so that two moving together turn as far as one mouse.
  orbit.turn(((from.x - to.x) * TURN) / 2, ((from.y - to.y) * TURN) / 2);
  const before = Math.hypot(from.x - other.x, from.y - other.y);
  const after = Math.hypot(to.x - other.x, to.y - other.y);
  if (before > 0 && after > 0) orbit.zoom(before / after);
}
