// What an instrument does, asked of its effects: never of its name or label.

import { Quaternion, Vector3 } from "three";
import type { Instrument, ToolState } from "./protocol";

type Effect = Instrument["effects"][number];
export type Does = Pick<Instrument, "effects">;

/** Its effect of a kind, if it has one. */
export function effectOf<Kind extends Effect["kind"]>({ effects }: Does, kind: Kind): Extract<Effect, { kind: Kind }> | null {
  const found = effects.find((effect): effect is Extract<Effect, { kind: Kind }> => effect.kind === kind);
  return found ?? null;
}

/** Whether current flows at its tip, so that it is insulated, sparks and buzzes. */
export function isElectric(instrument: Does): boolean {
  return effectOf(instrument, "heats") !== null;
}

/** Whether its end is of gauze. */
export function soaks(instrument: Does): boolean {
  return effectOf(instrument, "soaks") !== null;
}

/** The ball, or the rod along the shaft, that touches tissue first [m]; a thin one where nothing pushes. */
export function roundEnd(instrument: Does): { radius: number; length: number; offset: number } {
  return effectOf(instrument, "pushes") ?? { radius: 0.002, length: 0, offset: 0.002 };
}

/** Where a tool acts from, in the world [m]. */
export function actingPoint({ position, orientation }: ToolState, instrument: Instrument | undefined): number[] {
  const inside = new Vector3(...(instrument?.acts_at ?? [0, 0, 0]));
  return inside.applyQuaternion(new Quaternion(...orientation)).add(new Vector3(...position)).toArray();
}
