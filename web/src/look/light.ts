// The light of an endoscope, shared by every material: one lamp beside the lens, falling off with the square of the
// distance, round in the picture, and the shadow and occlusion of the instruments in it.

import { Vector2, Vector3, Vector4 } from "three";
import type { IUniform, PerspectiveCamera } from "three";

/** Bars that cast a shadow; an instrument with a thin end has two. */
export const MOST_TOOLS = 4;

/** Beside the lens, in its own axes [m]. Farther out than on a real scope (some 3 mm), so that shadows show depth. */
const LAMP = new Vector3(-0.016, 0.03, 0.0);
/** Radiance of a white surface at the distance looked at, before tone mapping; tuned for appearance. */
const BRIGHTNESS = 2.1;

/** What lies below an instrument or water and is mirrored in it; tuned for appearance. */
const GROUNDS = { flesh: new Vector3(0.30, 0.085, 0.07), earth: new Vector3(0.105, 0.10, 0.08) };

export interface LightUniforms {
  uLamp: IUniform<Vector3>;
  uLampPower: IUniform<number>;
  uUp: IUniform<Vector3>;
  uTheatreLamp: IUniform<Vector3>;
  /** What a mirror turned down shows. */
  uGround: IUniform<Vector3>;
  uVignette: IUniform<Vector3>;
  uToolCount: IUniform<number>;
  uToolTip: IUniform<Vector4[]>;
  uToolEnd: IUniform<Vector4[]>;
  /** Electric arc at a tip: where, and how bright. */
  uSpark: IUniform<Vector4>;
  [name: string]: IUniform;
}

/** An instrument as the light sees it: a ball on a rod, in world space. */
export interface Shade {
  tip: Vector3;
  radius: number;
  end: Vector3;
  shaftRadius: number;
}

export function makeLight(): LightUniforms {
  return {
    uLamp: { value: LAMP.clone() },
    uLampPower: { value: 1 },
    uUp: { value: new Vector3(0, 0, 1) },
    uTheatreLamp: { value: new Vector3(0, 0, 1) },
    uGround: { value: GROUNDS.flesh.clone() },
    uVignette: { value: new Vector3(1, 1, 1) },
    uToolCount: { value: 0 },
    uToolTip: { value: Array.from({ length: MOST_TOOLS }, () => new Vector4()) },
    uToolEnd: { value: Array.from({ length: MOST_TOOLS }, () => new Vector4()) },
    uSpark: { value: new Vector4() },
  };
}

/** What the scene is made of, for all that mirrors it. */
export function standOn(light: LightUniforms, ground: keyof typeof GROUNDS): void {
  light.uGround.value.copy(GROUNDS[ground]);
}

/** `theatreLamp` is the direction of the dim lamps above the table; `centre` and `radius` of the round picture in drawing-buffer pixels; `distance` is what the eye looks at [m]. */
export function aimLight(
  light: LightUniforms, camera: PerspectiveCamera, theatreLamp: Vector3, distance: number, centre: Vector2, radius: number,
): void {
  // The camera's own exposure follows what it looks at, so coming nearer does not burn the picture.
  light.uLampPower.value = BRIGHTNESS * distance * distance;
  light.uVignette.value.set(centre.x, centre.y, radius);
  light.uTheatreLamp.value.copy(theatreLamp).transformDirection(camera.matrixWorldInverse);
  light.uUp.value.copy(camera.up).transformDirection(camera.matrixWorldInverse);
}

export function castShades(light: LightUniforms, camera: PerspectiveCamera, shades: Shade[]): void {
  const count = Math.min(shades.length, MOST_TOOLS);
  light.uToolCount.value = count;
  const point = new Vector3();
  for (let i = 0; i < count; i++) {
    const { tip, radius, end, shaftRadius } = shades[i];
    point.copy(tip).applyMatrix4(camera.matrixWorldInverse);
    light.uToolTip.value[i].set(point.x, point.y, point.z, radius);
    point.copy(end).applyMatrix4(camera.matrixWorldInverse);
    light.uToolEnd.value[i].set(point.x, point.y, point.z, shaftRadius);
  }
}

/** `tip` in world space, null for none; `power` is the radiance of a white surface 1 cm away, before tone mapping. */
export function setSpark(light: LightUniforms, camera: PerspectiveCamera, tip: Vector3 | null, power: number): void {
  const point = (tip ?? new Vector3()).clone().applyMatrix4(camera.matrixWorldInverse);
  light.uSpark.value.set(point.x, point.y, point.z, tip === null ? 0 : power);
}

/** Everything is in view space: the eye at the origin, looking along −z. */
export const LIGHT_GLSL = /* glsl */ `
uniform vec3 uLamp;
uniform float uLampPower;
uniform vec3 uUp;
uniform vec3 uTheatreLamp;
uniform vec3 uGround;
uniform vec3 uVignette;
uniform int uToolCount;
uniform vec4 uToolTip[${MOST_TOOLS}];
uniform vec4 uToolEnd[${MOST_TOOLS}];
uniform vec4 uSpark;

const float PI = 3.14159265;
`;

/** After `LIGHT_GLSL`, in a fragment shader. */
export const PICTURE_GLSL = /* glsl */ `
// The round picture: the lens loses light towards its rim, then ends softly.
float vignetteAt(vec2 pixel) {
  vec2 d = (pixel - uVignette.xy) / uVignette.z;
  float r2 = dot(d, d);
  float lens = 1.0 + 0.75 * r2;
  return (1.0 - smoothstep(0.62, 1.35, r2)) / (lens * lens);
}

float vignette() {
  return vignetteAt(gl_FragCoord.xy);
}

// One step of an 8-bit screen, so that dark gradients do not band.
float dither() {
  return (fract(52.9829189 * fract(dot(gl_FragCoord.xy, vec2(0.06711056, 0.00583715)))) - 0.5) / 255.0;
}
`;

/** Light to screen: the film curve of Hejl and Burgess-Dawson (2010), the screen's gamma included; highlights burn out. */
export const FILM_GLSL = /* glsl */ `
vec3 toScreen(vec3 light) {
  vec3 x = max(light - 0.004, 0.0);
  return (x * (6.2 * x + 0.5)) / (x * (6.2 * x + 1.7) + 0.06);
}

// Screen to light: the same backwards.
vec3 fromScreen(vec3 screen) {
  vec3 y = min(screen, 0.985);
  vec3 a = 6.2 * (1.0 - y), b = 0.5 - 1.7 * y, c = -0.06 * y;
  return (-b + sqrt(max(b * b - 4.0 * a * c, 0.0))) / (2.0 * a) + 0.004;
}
`;

/** After `LIGHT_GLSL`. */
export const TOOL_SHADE_GLSL = /* glsl */ `
// Distance between two segments, and where on the first it is least.
vec2 closestApproach(vec3 p0, vec3 p1, vec3 q0, vec3 q1) {
  vec3 u = p1 - p0, v = q1 - q0, w = p0 - q0;
  float a = dot(u, u), b = dot(u, v), c = dot(v, v), d = dot(u, w), e = dot(v, w);
  float s = clamp((b * e - c * d) / max(a * c - b * b, 1e-12), 0.0, 1.0);
  float t = clamp((b * s + e) / c, 0.0, 1.0);
  s = clamp((b * t - d) / a, 0.0, 1.0);
  return vec2(length(w + s * u - t * v), s);
}

// x: share of the lamp that the instruments leave; y: share of the light from all around.
vec2 toolShade(vec3 point, vec3 normal) {
  vec2 left = vec2(1.0);
  for (int i = 0; i < ${MOST_TOOLS}; i++) {
    if (i >= uToolCount) break;
    vec3 tip = uToolTip[i].xyz;
    float radius = uToolTip[i].w;
    vec3 toLamp = uLamp - point;
    float s = clamp(dot(tip - point, toLamp) / dot(toLamp, toLamp), 0.0, 1.0);
    float ball = length(point + s * toLamp - tip);
    float soft = 0.0006 + 0.09 * s * length(toLamp);
    left.x *= smoothstep(radius - soft, radius + soft, ball);
    vec2 rod = closestApproach(point, uLamp, tip, uToolEnd[i].xyz);
    soft = 0.0006 + 0.09 * rod.y * length(toLamp);
    left.x *= mix(1.0, smoothstep(-soft, uToolEnd[i].w + soft, rod.x), 0.92);
    vec3 d = tip - point;
    float d2 = dot(d, d);
    float facing = max(0.0, dot(normal, d) * inversesqrt(d2) * 0.75 + 0.25);
    left.y *= 1.0 - 0.9 * facing * min(1.0, 1.7 * radius * radius / d2);
  }
  return left;
}
`;

/** After `LIGHT_GLSL`: blue-white light of an arc, falling off with the square of the distance. */
export const SPARK_GLSL = /* glsl */ `
vec3 sparkLight(vec3 point, vec3 normal) {
  if (uSpark.w <= 0.0) return vec3(0.0);
  vec3 d = uSpark.xyz - point;
  float d2 = dot(d, d);
  float facing = max(0.0, 0.3 + 0.7 * dot(normal, d) * inversesqrt(d2));
  // An arc is not a point, and tissue beside it must stay to be judged.
  return vec3(0.62, 0.78, 1.0) * uSpark.w * facing * 0.0001 / (d2 + 0.00002);
}
`;
