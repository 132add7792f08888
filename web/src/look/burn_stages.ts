// The scenario's table of burn stages as a strip that the tissue's shader reads: an edit of the table changes the look.

import { ClampToEdgeWrapping, DataTexture, DataUtils, HalfFloatType, LinearFilter, RGBAFormat } from "three";
import type { Column } from "../protocol";
import { HIGHEST_LEVEL } from "./scales";

/** Name of the table in a scene. */
export const STAGES_TABLE = "burn_stages";

const STEPS = 256;

/** How tissue looks at one burn level; colours are linear. */
interface Stage {
  level: number;
  red: number;
  green: number;
  blue: number;
  /** How much of the organ's own colour it replaces. */
  cover: number;
  /** 0 a mirror, 1 matt. */
  roughness: number;
  /** Of the clear coat. */
  wetness: number;
}

/** For scenes with a burn and no table, in the order of `Stage`; as `heat/stages.py` has them. */
const USUAL: Stage[] = [
  [0.0, 0.13, 0.03, 0.02, 0.0, 0.35, 1.0], [0.5, 0.3, 0.15, 0.11, 0.7, 0.45, 0.8], [1.0, 0.4, 0.32, 0.25, 0.95, 0.6, 0.5],
  [1.25, 0.26, 0.17, 0.09, 1.0, 0.75, 0.15], [1.6, 0.075, 0.038, 0.02, 1.0, 0.9, 0.0], [2.0, 0.012, 0.011, 0.011, 1.0, 1.0, 0.0],
].map(([level, red, green, blue, cover, roughness, wetness]) => ({ level, red, green, blue, cover, roughness, wetness }));

/** One byte of a screen's colour to light. */
function toLinear(byte: number): number {
  const c = byte / 255;
  return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
}

/** Columns are known by name; what the table does not have is as usual. */
export function stagesOf(columns: Column[], rows: number[][]): Stage[] {
  const named = (name: string) => columns.findIndex((column) => column.name === name);
  const level = named("level");
  const colour = named("colour");
  if (level < 0 || colour < 0) return USUAL;
  const optional = { cover: named("cover"), roughness: named("roughness"), wetness: named("wetness") };
  const stages = rows.map((row) => {
    const usual = at(USUAL, row[level]);
    const pick = (key: keyof typeof optional) => (optional[key] < 0 ? usual[key] : row[optional[key]]);
    const packed = row[colour];
    return {
      level: row[level], red: toLinear((packed >> 16) & 255), green: toLinear((packed >> 8) & 255), blue: toLinear(packed & 255),
      cover: pick("cover"), roughness: pick("roughness"), wetness: pick("wetness"),
    };
  });
  return stages.sort((one, other) => one.level - other.level);
}

/** The linear mix of the two stages around a level. */
export function at(stages: Stage[], level: number): Stage {
  const after = stages.findIndex((stage) => stage.level > level);
  if (after === 0) return stages[0];
  if (after < 0) return stages[stages.length - 1];
  const [one, other] = [stages[after - 1], stages[after]];
  const share = (level - one.level) / (other.level - one.level);
  const mixed = { ...one };
  for (const key of Object.keys(one) as (keyof Stage)[]) mixed[key] = one[key] + share * (other[key] - one[key]);
  return mixed;
}

/** Along x the level; in the lower row colour and cover, in the upper one roughness and wetness. */
export class StageStrip {
  readonly texture: DataTexture;
  private readonly data = new Uint16Array(STEPS * 2 * 4);
  private shown = "";

  constructor() {
    this.texture = new DataTexture(this.data, STEPS, 2, RGBAFormat, HalfFloatType);
    this.texture.magFilter = this.texture.minFilter = LinearFilter;
    this.texture.wrapS = ClampToEdgeWrapping;
    this.fill(USUAL);
  }

  /** True when the look changed. */
  set(columns: Column[], rows: number[][]): boolean {
    const asked = JSON.stringify(rows);
    if (asked === this.shown) return false;
    this.shown = asked;
    this.fill(stagesOf(columns, rows));
    return true;
  }

  reset(): void {
    this.shown = "";
    this.fill(USUAL);
  }

  private fill(stages: Stage[]): void {
    for (let i = 0; i < STEPS; i++) {
      const { red, green, blue, cover, roughness, wetness } = at(stages, (i / (STEPS - 1)) * HIGHEST_LEVEL);
      const half = [red, green, blue, cover, roughness, wetness].map((value) => DataUtils.toHalfFloat(value));
      this.data.set(half.slice(0, 4), 4 * i);
      this.data.set(half.slice(4), 4 * (STEPS + i));
    }
    this.texture.needsUpdate = true;
  }
}
