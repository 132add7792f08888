// Polished surgical steel, with a mark every centimetre of the shaft; the black insulation of an electric instrument; or
// gauze. Blood stains them.

import { ShaderMaterial } from "three";
import { FILM_GLSL, LIGHT_GLSL, PICTURE_GLSL } from "./light";
import type { LightUniforms } from "./light";
import { STAIN_GLSL } from "./stains";
import type { StainUniforms } from "./stains";

export type Finish = "polished" | "marked" | "insulated" | "gauze";

const DEFINES: Record<Finish, Record<string, number>> = {
  polished: {}, marked: { MARKS: 1 }, insulated: { INSULATED: 1 }, gauze: { GAUZE: 1 },
};

/** Stained where `stains` are given: the geometry then says with "place" where each vertex is in the tool's frame. */
export function makeSteelMaterial(light: LightUniforms, finish: Finish, stains: StainUniforms | null = null): ShaderMaterial {
  return new ShaderMaterial({
    name: `steel, ${finish}`,
    uniforms: { ...light, ...stains },
    defines: { ...DEFINES[finish], ...(stains === null ? {} : { STAINED: 1 }) },
    vertexShader: VERTEX,
    fragmentShader: FRAGMENT,
  });
}

const VERTEX = /* glsl */ `
varying vec3 vPoint;
varying vec3 vNormal;
varying float vAlong;
#ifdef STAINED
attribute vec3 place; // in the tool's frame [m]
varying vec3 vPlace;
#endif

void main() {
  #ifdef STAINED
  vPlace = place;
  #endif
  vec4 point = modelViewMatrix * vec4(position, 1.0);
  vPoint = point.xyz;
  vNormal = normalMatrix * normal;
  vAlong = position.z;
  gl_Position = projectionMatrix * point;
}
`;

const FRAGMENT = /* glsl */ `
${LIGHT_GLSL}
${PICTURE_GLSL}
${FILM_GLSL}
varying vec3 vPoint;
varying vec3 vNormal;
varying float vAlong;
#ifdef STAINED
varying vec3 vPlace;
${STAIN_GLSL}

vec4 stainHere() {
  float row = clamp(vPlace.z / uStainPlace.w, 0.5, uStainPlace.y - 0.5);
  return texture(uStains, vec2(atan(vPlace.y, vPlace.x) / (2.0 * PI), (uStainPlace.x + row) / uStainPlace.z));
}
#endif

#ifdef INSULATED
const vec3 STEEL = vec3(0.04);
const vec3 BODY = vec3(0.006, 0.0062, 0.007);
#else
const vec3 STEEL = vec3(0.60, 0.59, 0.57);
const vec3 BODY = vec3(0.0);
#endif
const float FIRST_MARK = 0.03; // [m] from the tip

// What polished metal shows of its surroundings: the ground below, a dark room with soft lamps above.
vec3 surroundings(vec3 away) {
  float height = dot(away, uUp);
  // The organ is a part of the ground only; around it lie dark drapes.
  vec3 ground = 0.55 * mix(vec3(dot(uGround, vec3(0.3, 0.6, 0.1))), uGround, 0.4);
  vec3 colour = mix(ground, vec3(0.05, 0.055, 0.065), smoothstep(-0.35, 0.15, height));
  colour += vec3(0.42, 0.46, 0.50) * smoothstep(0.45, 0.62, height) * (1.0 - smoothstep(0.80, 0.95, height));
  colour += vec3(0.16) * smoothstep(0.25, 0.9, away.z);
  return colour;
}

#ifdef GAUZE
const vec3 COTTON = vec3(0.62, 0.61, 0.57);
const vec3 SOAKED = vec3(0.20, 0.008, 0.008);

// Threads one way and the other; full of blood they are dark red.
vec3 gauze(vec3 normal, vec3 toLamp, float lamp) {
  vec3 threads = sin(vec3(vPoint.x, vPoint.y, vAlong) * 9000.0);
  vec3 cloth = COTTON * (1.0 + 0.10 * threads.x * threads.y + 0.06 * threads.z);
  #ifdef STAINED
  vec4 stain = stainHere();
  if (uThickest > 0.0) cloth = mix(cloth, SOAKED * (0.8 + 0.4 * cloth), smoothstep(0.0, 0.22, stain.r) * stain.g);
  #endif
  return cloth * lamp * (0.45 * max(dot(normal, toLamp), 0.0) + 0.05);
}
#endif

void main() {
  vec3 normal = normalize(vNormal);
  vec3 eye = normalize(-vPoint);
  vec3 toLamp = normalize(uLamp - vPoint);
  float lamp = uLampPower / dot(uLamp - vPoint, uLamp - vPoint) * vignette();
  float room = uLampPower / dot(vPoint, vPoint) * vignette();
  float nv = max(dot(normal, eye), 0.0);
  vec3 reflectance = STEEL + (1.0 - STEEL) * pow(1.0 - nv, 5.0);

  #ifdef MARKS
  float mark = step(FIRST_MARK - 0.0005, vAlong) * step(abs(fract((vAlong - FIRST_MARK) / 0.01 + 0.5) - 0.5), 0.045);
  reflectance *= mix(1.0, 0.12, mark);
  #endif

  float nh = max(dot(normal, normalize(toLamp + eye)), 0.0);
  float sharp = 0.10, broad = 0.34;
  float d1 = nh * nh * (sharp * sharp - 1.0) + 1.0, d2 = nh * nh * (broad * broad - 1.0) + 1.0;
  float glint = 0.35 * sharp * sharp / (d1 * d1) + 0.65 * broad * broad / (d2 * d2);
  vec3 colour = reflectance * (surroundings(reflect(-eye, normal)) * room * 0.55 + glint * lamp * 0.30 * step(0.0, dot(normal, toLamp)));
  colour += BODY * max(dot(normal, toLamp), 0.0) * lamp;

  #ifdef STAINED
  float thick = uThickest > 0.0 ? stainOf(stainHere()) : 0.0;
  colour = colour * mix(stainLets(thick), vec3(1.0), 0.08) + stainAdds(thick) * lamp * (0.6 * max(dot(normal, toLamp), 0.0) + 0.1);
  #endif
  #ifdef GAUZE
  colour = gauze(normal, toLamp, lamp);
  #endif

  gl_FragColor = vec4(toScreen(colour) + dither(), 1.0);
}
`;
