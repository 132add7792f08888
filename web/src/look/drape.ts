// What lies around the tissue: a surgical drape on the table, in soft folds, fading into the dark of the room.

import { BufferAttribute, BufferGeometry, Mesh, ShaderMaterial, Vector3 } from "three";
import type { Box3 } from "three";
import { FILM_GLSL, LIGHT_GLSL, PICTURE_GLSL, TOOL_SHADE_GLSL } from "./light";
import type { LightUniforms } from "./light";
import { STAIN_GLSL } from "./stains";
import type { StainUniforms } from "./stains";

/** Side of the cloth over the diagonal of what lies on it. */
const EXTENT = 6;

export class Drape {
  readonly mesh: Mesh;
  private readonly material: ShaderMaterial;

  constructor(light: LightUniforms, stains: StainUniforms, private readonly plain: boolean) {
    this.material = new ShaderMaterial({
      name: "drape",
      defines: plain ? { PLAIN: 1 } : {},
      uniforms: {
        ...light,
        ...stains,
        uAcross: { value: new Vector3(1, 0, 0) },
        uAlong: { value: new Vector3(0, 1, 0) },
      },
      vertexShader: VERTEX,
      fragmentShader: FRAGMENT,
    });
    this.mesh = new Mesh(new BufferGeometry(), this.material);
    this.mesh.frustumCulled = false;
  }

  /** Lays the cloth under what has these bounds and these points (three numbers each). */
  lay(bounds: Box3, upwards: Vector3, bodies: Float32Array[]): void {
    const up = upwards.clone().normalize();
    const across = Math.abs(up.x) > 0.9 ? new Vector3(0, 1, 0) : new Vector3(1, 0, 0);
    across.addScaledVector(up, -across.dot(up)).normalize();
    const along = up.clone().cross(across);
    const corners = [bounds.min, bounds.max];
    const span = (axis: Vector3) => corners.map((c) => c.dot(axis)).sort((a, b) => a - b);
    const [x0, x1] = span(across);
    const [y0, y1] = span(along);
    const floor = span(up)[0];
    const size = Math.hypot(x1 - x0, y1 - y0);
    const print = new Footprint([x0, x1], [y0, y1], floor);
    for (const points of bodies) print.add(points, across, along, up);
    this.material.uniforms.uAcross.value = across;
    this.material.uniforms.uAlong.value = along;
    const cells = this.plain ? 64 : 120;
    const sheet = new BufferGeometry();
    const points = new Float32Array((cells + 1) ** 2 * 3);
    const gaps = new Float32Array((cells + 1) ** 2);
    const point = new Vector3();
    let out = 0;
    for (let j = 0; j <= cells; j++) {
      for (let i = 0; i <= cells; i++) {
        const x = spread(i, cells) * EXTENT * size;
        const y = spread(j, cells) * EXTENT * size;
        const outside = Math.max(Math.abs(x) - (x1 - x0) / 2, Math.abs(y) - (y1 - y0) / 2, 0) / size;
        point.copy(up).multiplyScalar(floor + foldHeight(x / size, y / size, outside) * size - 0.0005);
        point.addScaledVector(across, x + (x0 + x1) / 2).addScaledVector(along, y + (y0 + y1) / 2);
        point.toArray(points, 3 * out);
        gaps[out] = print.gap(x + (x0 + x1) / 2, y + (y0 + y1) / 2) / Math.max((x1 - x0) / 2, 1e-4);
        out += 1;
      }
    }
    sheet.setAttribute("position", new BufferAttribute(points, 3));
    sheet.setAttribute("gap", new BufferAttribute(gaps, 1));
    sheet.setIndex(gridTriangles(cells));
    sheet.computeVertexNormals();
    this.mesh.geometry.dispose();
    this.mesh.geometry = sheet;
  }
}

const PRINT_CELLS = 40;
/** How much sooner a shadow fades upwards than sideways; tuned for appearance. */
const HEIGHT_COUNTS = 1.6;

/** Where tissue is above the cloth, and how high its lowest point is there. */
class Footprint {
  private readonly lowest = new Float32Array(PRINT_CELLS ** 2).fill(Infinity);

  constructor(private readonly x: number[], private readonly y: number[], private readonly floor: number) {}

  add(points: Float32Array, across: Vector3, along: Vector3, up: Vector3): void {
    const point = new Vector3();
    for (let k = 0; k < points.length; k += 3) {
      point.fromArray(points, k);
      const i = this.cell(point.dot(across), this.x);
      const j = this.cell(point.dot(along), this.y);
      const height = point.dot(up) - this.floor;
      const at = j * PRINT_CELLS + i;
      if (height < this.lowest[at]) this.lowest[at] = height;
    }
  }

  /** From a place on the cloth to the nearest tissue, heights counted more [m]. */
  gap(x: number, y: number): number {
    let least = Infinity;
    for (let j = 0; j < PRINT_CELLS; j++) {
      for (let i = 0; i < PRINT_CELLS; i++) {
        const height = this.lowest[j * PRINT_CELLS + i];
        if (height === Infinity) continue;
        const dx = Math.max(0, Math.abs(x - this.centre(i, this.x)) - this.half(this.x));
        const dy = Math.max(0, Math.abs(y - this.centre(j, this.y)) - this.half(this.y));
        least = Math.min(least, Math.hypot(dx, dy) + HEIGHT_COUNTS * height);
      }
    }
    return least === Infinity ? 1e3 : least;
  }

  private half([low, high]: number[]): number {
    return (high - low) / PRINT_CELLS / 2;
  }

  private centre(index: number, [low, high]: number[]): number {
    return low + ((index + 0.5) * (high - low)) / PRINT_CELLS;
  }

  private cell(value: number, [low, high]: number[]): number {
    return Math.min(PRINT_CELLS - 1, Math.max(0, Math.floor(((value - low) / Math.max(high - low, 1e-9)) * PRINT_CELLS)));
  }
}

/** Grid line to place, −0.5 to 0.5, closer together in the middle, where the tissue's shadow is. */
function spread(line: number, cells: number): number {
  const t = (2 * line) / cells - 1;
  return 0.5 * t * (0.25 + 0.75 * t * t);
}

/** Flat under the tissue, folds that grow outwards; lengths in block sizes; tuned for appearance. */
function foldHeight(x: number, y: number, outside: number): number {
  const calm = Math.min(1, Math.max(0, (outside - 0.05) / 0.7));
  const bend = 0.35 * Math.sin(1.3 * x + 0.7) + 0.28 * Math.sin(2.1 * y - 0.4);
  const ridge = (phase: number) => 0.5 + 0.5 * Math.cos(2 * phase);
  const folds =
    0.085 * ridge(3.1 * (x * 0.8 + y * 0.6 + bend)) ** 3 +
    0.07 * ridge(2.3 * (x * 0.5 - y * 0.87 + 0.8 * bend) + 0.9) ** 3 +
    0.012 * Math.sin(9 * x + 4 * bend) * Math.sin(8 * y - 3 * bend);
  return calm * calm * (3 - 2 * calm) * folds - 0.03 * calm;
}

function gridTriangles(cells: number): number[] {
  const triangles: number[] = [];
  const row = cells + 1;
  for (let j = 0; j < cells; j++) {
    for (let i = 0; i < cells; i++) {
      const a = j * row + i;
      triangles.push(a, a + 1, a + row + 1, a, a + row + 1, a + row);
    }
  }
  return triangles;
}

// Cloth is matt and its light changes slowly, so all but the emboss is computed per vertex.
const CLOTH_GLSL = /* glsl */ `
const vec3 CLOTH = vec3(0.011, 0.070, 0.086);
`;

const VERTEX = /* glsl */ `
${LIGHT_GLSL}
${TOOL_SHADE_GLSL}
attribute float gap; // from the nearest tissue above the cloth, in half widths of it
uniform vec3 uAcross;
uniform vec3 uAlong;
varying vec3 vLight;
varying vec3 vGlow;
varying vec2 vPlace;

${CLOTH_GLSL}
void main() {
  vec4 view = modelViewMatrix * vec4(position, 1.0);
  vec3 point = view.xyz;
  vec3 across = normalize(normalMatrix * normal);
  vPlace = vec2(dot(position, uAcross), dot(position, uAlong));
  vec3 toLamp = uLamp - point;
  float facing = max(dot(across, normalize(toLamp)), 0.0);
  float contact = 1.0 - 0.9 * exp(-gap * 9.0);
  #ifdef PLAIN
  vec2 shade = vec2(1.0);
  #else
  vec2 shade = toolShade(point, across);
  #endif
  float lamp = uLampPower / dot(toLamp, toLamp);
  vLight = CLOTH * lamp * (0.95 * facing * facing * shade.x * mix(contact, 1.0, 0.2) + 0.025 * contact * shade.y);
  vGlow = 0.2 * uGround * lamp * exp(-gap * 4.0) * contact;
  gl_Position = projectionMatrix * view;
}
`;

const FRAGMENT = /* glsl */ `
${LIGHT_GLSL}
${PICTURE_GLSL}
${FILM_GLSL}
${STAIN_GLSL}
${CLOTH_GLSL}
varying vec3 vLight;
varying vec3 vGlow;
varying vec2 vPlace;

void main() {
  vec3 colour = vLight;
  #ifndef PLAIN
  // A non-woven drape has a fine emboss; it disappears before its cells become smaller than a pixel.
  float footprint = max(fwidth(vPlace.x), fwidth(vPlace.y));
  vec2 weave = vPlace * (6.2831853 / 0.0016);
  colour *= 1.0 + 0.05 * sin(weave.x + weave.y) * sin(weave.x - weave.y) * (1.0 - smoothstep(0.0003, 0.0009, footprint));
  #endif
  vec2 place = (vPlace - uStainPlace.xy) / uStainPlace.zw;
  if (uThickest > 0.0 && all(greaterThan(place, vec2(0.0))) && all(lessThan(place, vec2(1.0)))) {
    float thick = stainOf(texture(uStains, place));
    colour = colour * stainLets(thick) + stainAdds(thick) * colour.g / CLOTH.g;
  }
  gl_FragColor = vec4(toScreen((colour + vGlow) * vignette()) + dither(), 1.0);
}
`;
