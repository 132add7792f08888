// Light through what fills space: smoke, blood in saline. One ray per pixel through the box that it fills, as far as the
// nearest solid, in equal steps.
//
// Along the ray light is lost by Beer and Lambert, T = exp(−∫σ ds), and what is scattered towards the eye is added. The lamp
// sits beside the lens, so its light has come through the same smoke as it goes back through: it arrives as T and is seen as
// T². Steps are integrated exactly for a constant σ, so that few of them are enough.

import { EYE_GLSL } from "./fluid_shaders";
import { FILM_GLSL, LIGHT_GLSL, PICTURE_GLSL } from "./light";

export const VOLUME_VERTEX = /* glsl */ `
varying vec3 vPlace; // in the box, 0 to 1 along each side

void main() {
  vPlace = position;
  gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
}
`;

/** Two pictures: scattered light with the depth where the ray ended, and the share of light that came through. */
export const VOLUME_MARCH = /* glsl */ `
precision highp sampler3D;
${LIGHT_GLSL}
${PICTURE_GLSL}
${EYE_GLSL}
uniform sampler3D tDensity; // red: density, green: share of blood
uniform sampler2D tSceneDepth;
uniform vec2 uSize; // of this pass
uniform vec2 uPixels; // of the picture
uniform mat4 uToBox; // view space to the box, 0 to 1
uniform vec3 uLow; // what of the box is not empty, 0 to 1
uniform vec3 uHigh;
uniform float uDensest; // [1/m]
uniform vec3 uExtinction; // of the medium itself, share of uDensest
uniform vec3 uAlbedo;
uniform vec3 uDyeExtinction; // of blood in it
uniform vec3 uDyeAlbedo;
varying vec3 vPlace;
layout(location = 0) out vec4 scatteredOut;
layout(location = 1) out vec4 keptOut;

// Shares of the lamp and of the room that a white cloud gives back; tuned for appearance, beside tissue.
const float LAMP_LIGHT = 0.30;
const float ROOM_LIGHT = 0.075;
const float DARKEST = 0.01; // less light than this is none
const float SOFT = 0.12; // share of the box along which it fades towards its sides, which nobody should see

float softAt(vec3 place) {
  vec2 near = smoothstep(0.0, SOFT, min(place.xy, 1.0 - place.xy));
  return near.x * near.y;
}

void main() {
  vec2 uv = gl_FragCoord.xy / uSize;
  float solid = distanceOf(texture(tSceneDepth, uv).r);
  vec3 ray = rayThrough(uv); // one metre along the axis
  vec3 eye = (uToBox * vec4(0.0, 0.0, 0.0, 1.0)).xyz, way = mat3(uToBox) * ray;
  vec3 one = (uLow - eye) / way, other = (uHigh - eye) / way;
  vec3 first = min(one, other), last = max(one, other);
  float from = max(max(max(first.x, first.y), first.z), 0.0);
  float to = min(min(min(last.x, last.y), last.z), solid);
  vec3 scattered = vec3(0.0), kept = vec3(1.0);
  if (to > from) {
    float step = (to - from) / float(STEPS), metres = step * length(ray);
    float jitter = fract(52.9829189 * fract(dot(gl_FragCoord.xy, vec2(0.06711056, 0.00583715))));
    float at = from + jitter * step;
    float lit = vignetteAt(uv * uPixels);
    for (int k = 0; k < STEPS; k++) {
      vec3 place = eye + at * way;
      vec2 medium = texture(tDensity, place).rg;
      medium.x *= softAt(place);
      if (medium.x > 0.0) {
        vec3 loss = uDensest * medium.x * mix(uExtinction, uDyeExtinction, medium.y);
        vec3 through = exp(-loss * metres);
        vec3 point = at * ray;
        float lamp = uLampPower / dot(uLamp - point, uLamp - point), room = uLampPower / dot(point, point);
        vec3 light = LAMP_LIGHT * lamp * kept + vec3(ROOM_LIGHT * room);
        scattered += kept * (1.0 - through) * mix(uAlbedo, uDyeAlbedo, medium.y) * light * lit;
        kept *= through;
        if (max(kept.x, max(kept.y, kept.z)) < DARKEST) break;
      }
      at += step;
    }
  }
  scatteredOut = vec4(scattered, min(solid, FARTHEST));
  keptOut = vec4(kept, 1.0);
}
`;

/** Over the picture: a tent over the texels around, wider than one so that the steps' grain does not show. Of the texels around, those that ended at another depth than this pixel do not count. */
export const VOLUME_COMPOSITE = /* glsl */ `
${FILM_GLSL}
${EYE_GLSL}
uniform sampler2D tScene;
uniform sampler2D tSceneDepth;
uniform sampler2D tScattered;
uniform sampler2D tKept;
uniform vec2 uSmall; // texels of the small pictures
varying vec2 vUv;

float dither() {
  return (fract(52.9829189 * fract(dot(gl_FragCoord.xy, vec2(0.06711056, 0.00583715)))) - 0.5) / 255.0;
}

void main() {
  vec3 under = texture2D(tScene, vUv).rgb;
  vec3 scattered = texture2D(tScattered, vUv).rgb, kept = texture2D(tKept, vUv).rgb;
  if (dot(scattered, vec3(1.0)) < 1e-5 && min(kept.x, min(kept.y, kept.z)) > 0.9995) {
    gl_FragColor = vec4(under, 1.0);
    return;
  }
  float own = min(distanceOf(texture2D(tSceneDepth, vUv).r), FARTHEST);
  vec2 corner = floor(vUv * uSmall - 0.5), within = vUv * uSmall - 0.5 - corner;
  float total = 0.0;
  scattered = kept = vec3(0.0);
  for (int j = 1 - REACH; j <= REACH; j++) {
    for (int i = 1 - REACH; i <= REACH; i++) {
      vec2 by = vec2(float(i), float(j));
      vec2 tent = max(1.0 - abs(by - within) / float(REACH), 0.001);
      vec2 uv = (corner + by + 0.5) / uSmall;
      vec4 light = texture2D(tScattered, uv);
      float weight = tent.x * tent.y / (1.0 + 1000.0 * abs(light.a - own) / own);
      scattered += weight * light.rgb;
      kept += weight * texture2D(tKept, uv).rgb;
      total += weight;
    }
  }
  gl_FragColor = vec4(toScreen(fromScreen(under) * kept / total + scattered / total) + dither(), 1.0);
}
`;
