// Smooth things of one colour: glass heads of pins, sutures. Lit by the endoscope's lamp, with a small bright highlight.

import { Color, ShaderMaterial, Vector3 } from "three";
import { FILM_GLSL, LIGHT_GLSL, PICTURE_GLSL } from "./light";
import type { LightUniforms } from "./light";

/** `colour` as a screen has it. `shine` is the strength of the highlight: 1 for glass. */
export function makePlasticMaterial(light: LightUniforms, colour: string, shine = 1): ShaderMaterial {
  const { r, g, b } = new Color(colour);
  return new ShaderMaterial({
    name: `plastic ${colour}`,
    uniforms: { ...light, uColour: { value: new Vector3(r, g, b) }, uShine: { value: shine } },
    vertexShader: VERTEX,
    fragmentShader: FRAGMENT,
  });
}

const VERTEX = /* glsl */ `
varying vec3 vPoint;
varying vec3 vNormal;

void main() {
  vec4 point = modelViewMatrix * vec4(position, 1.0);
  vPoint = point.xyz;
  vNormal = normalMatrix * normal;
  gl_Position = projectionMatrix * point;
}
`;

const FRAGMENT = /* glsl */ `
${LIGHT_GLSL}
${PICTURE_GLSL}
${FILM_GLSL}
uniform vec3 uColour;
uniform float uShine;
varying vec3 vPoint;
varying vec3 vNormal;

// Shares of the lamp and of the room that a matte body gives back; tuned for appearance, beside tissue.
const float BODY_LIGHT = 0.30;
const float ROOM_LIGHT = 0.07;

void main() {
  vec3 normal = normalize(vNormal);
  vec3 eye = normalize(-vPoint);
  vec3 toLamp = uLamp - vPoint;
  float lamp = uLampPower / dot(toLamp, toLamp) * vignette();
  float room = uLampPower / dot(vPoint, vPoint) * vignette();
  toLamp = normalize(toLamp);
  float facing = max((dot(normal, toLamp) + 0.15) / 1.15, 0.0);
  float nh = max(dot(normal, normalize(toLamp + eye)), 0.0);
  float rim = pow(1.0 - max(dot(normal, eye), 0.0), 5.0);
  vec3 colour = uColour * (BODY_LIGHT * lamp * facing + ROOM_LIGHT * room * (0.6 + 0.4 * dot(normal, uUp)));
  colour += uShine * (0.22 * pow(nh, 120.0) * lamp + 0.10 * rim * room);
  gl_FragColor = vec4(toScreen(colour) + dither(), 1.0);
}
`;
