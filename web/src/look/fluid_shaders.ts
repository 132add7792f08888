// What turns particles into a liquid: balls in depth, their summed thickness, smoothing, normals, light.
//
// The same steps and formulas as `imaging/splats.py` and `imaging/shading.py`, which are tested against closed forms. All
// lengths are metres in view space: the eye at the origin, looking along −z; depth is the distance along that axis, 0 where
// there is nothing.

import { FILM_GLSL, LIGHT_GLSL, PICTURE_GLSL } from "./light";

/** Half width of the depth filter at most [texel]; near the eye it is cut short. */
export const MOST_TAPS = 12;

// Rays and depths of a perspective camera, its view offset included.
export const EYE_GLSL = /* glsl */ `
uniform mat4 uProjection;

// Through a place of the picture (0 to 1), with length 1 along the axis.
vec3 rayThrough(vec2 uv) {
  vec2 ndc = 2.0 * uv - 1.0;
  return vec3((ndc.x + uProjection[2][0]) / uProjection[0][0], (ndc.y + uProjection[2][1]) / uProjection[1][1], -1.0);
}

float bufferDepth(float distance) {
  return 0.5 + 0.5 * (uProjection[3][2] / distance - uProjection[2][2]);
}

float distanceOf(float buffer) {
  return uProjection[3][2] / (2.0 * buffer - 1.0 + uProjection[2][2]);
}
`;

// A quarter more than the circle: a ball in perspective is an ellipse, and a point is a square around its centre.
export const BALL_VERTEX = /* glsl */ `
uniform float uRadius;
uniform float uTexels; // of one metre at a distance of one metre
attribute float share;
attribute float volume;
varying vec3 vCentre;
varying float vShare;
varying float vVolume;

void main() {
  vec4 centre = modelViewMatrix * vec4(position, 1.0);
  vCentre = centre.xyz;
  vShare = share;
  vVolume = volume;
  gl_Position = projectionMatrix * centre;
  gl_PointSize = 2.0 * uRadius * uTexels / max(-centre.z - uRadius, 1e-4) * 1.1 + 1.0;
}
`;

const BALL_GLSL = /* glsl */ `
uniform float uRadius;
uniform vec2 uSize;
varying vec3 vCentre;
varying float vShare;

// x: half the chord of this pixel's ray in the ball (negative: it misses), y: depth where it enters.
vec2 ball(vec3 ray) {
  float along = dot(vCentre, ray) / dot(ray, ray);
  vec3 q = vCentre - along * ray;
  float rest = uRadius * uRadius - dot(q, q);
  if (rest <= 0.0) return vec2(-1.0);
  float chord = sqrt(rest);
  return vec2(chord, along - chord / length(ray));
}
`;

export const BALL_DEPTH = /* glsl */ `
${EYE_GLSL}
${BALL_GLSL}
void main() {
  vec2 met = ball(rayThrough(gl_FragCoord.xy / uSize));
  if (met.x < 0.0 || met.y <= 0.0) discard;
  gl_FragColor = vec4(met.y, 0.0, 0.0, 1.0);
  gl_FragDepth = bufferDepth(met.y);
}
`;

/** Millimetres of liquid, and of the dye in it: half floats have too few bits for metres. */
export const BALL_THICKNESS = /* glsl */ `
${EYE_GLSL}
${BALL_GLSL}
uniform sampler2D tSceneDepth;
uniform float uFill; // share of a full particle's ball that is liquid
varying float vVolume;

void main() {
  vec2 uv = gl_FragCoord.xy / uSize;
  vec3 ray = rayThrough(uv);
  vec2 met = ball(ray);
  if (met.x < 0.0) discard;
  // What lies behind a solid is not seen through.
  float room = (distanceOf(texture2D(tSceneDepth, uv).r) - met.y) * length(ray);
  float thick = 1000.0 * uFill * vVolume * clamp(room, 0.0, 2.0 * met.x);
  gl_FragColor = vec4(thick, thick * vShare, 0.0, 1.0);
}
`;

/** One pass of the narrow-range filter: depths within a range of the pixel's own, in pairs, so that rims do not tilt. */
export const SMOOTH = /* glsl */ `
uniform sampler2D tDepth;
uniform vec2 uStep;
uniform float uTexels;
uniform float uSmoothing;
uniform float uRange;
varying vec2 vUv;

float sampleDepth(vec2 uv, float own) {
  if (any(lessThan(uv, vec2(0.0))) || any(greaterThan(uv, vec2(1.0)))) return 0.0;
  float z = texture2D(tDepth, uv).r;
  return abs(z - own) <= uRange ? z : 0.0;
}

void main() {
  float own = texture2D(tDepth, vUv).r;
  if (own <= 0.0) {
    gl_FragColor = vec4(0.0);
    return;
  }
  float sigma = min(uTexels * uSmoothing / own, 0.5 * float(${MOST_TAPS}));
  float total = own, weight = 1.0;
  // exp(-k² / 2σ²) by products: each is the one before times a ratio that itself falls by a constant factor.
  float share = 1.0, ratio = exp(-0.5 / (sigma * sigma)), factor = ratio * ratio;
  for (int k = 1; k <= ${MOST_TAPS}; k++) {
    if (float(k) > ceil(2.0 * sigma)) break;
    float before = sampleDepth(vUv - float(k) * uStep, own);
    float after = sampleDepth(vUv + float(k) * uStep, own);
    share *= ratio;
    ratio *= factor;
    if (before > 0.0 && after > 0.0) {
      total += share * (before + after);
      weight += 2.0 * share;
    }
  }
  gl_FragColor = vec4(total / weight, 0.0, 0.0, 1.0);
}
`;

/** Normals in view space, and in alpha whether there is liquid: both may be interpolated, depth may not. */
export const NORMAL = /* glsl */ `
${EYE_GLSL}
uniform sampler2D tDepth;
uniform vec2 uTexel;
uniform float uRange;
varying vec2 vUv;

vec3 pointAt(vec2 uv, float depth) {
  return depth * rayThrough(uv);
}

// Between neighbouring points, on the side where depth changes less.
vec3 difference(vec2 by, float own) {
  vec3 here = pointAt(vUv, own);
  float after = texture2D(tDepth, vUv + by).r, before = texture2D(tDepth, vUv - by).r;
  float up = after > 0.0 ? abs(after - own) : 1e9, down = before > 0.0 ? abs(before - own) : 1e9;
  if (min(up, down) > uRange) return pointAt(vUv + by, own) - here;
  return up < down ? pointAt(vUv + by, after) - here : here - pointAt(vUv - by, before);
}

void main() {
  float own = texture2D(tDepth, vUv).r;
  if (own <= 0.0) {
    gl_FragColor = vec4(0.0);
    return;
  }
  vec3 normal = normalize(cross(difference(vec2(uTexel.x, 0.0), own), difference(vec2(0.0, uTexel.y), own)));
  gl_FragColor = vec4(normal, 1.0);
}
`;

/** The picture: Schlick's Fresnel between what is mirrored and what is seen through, absorbed by Beer and Lambert. */
export const COMPOSITE = /* glsl */ `
${LIGHT_GLSL}
${PICTURE_GLSL}
${FILM_GLSL}
${EYE_GLSL}
uniform sampler2D tScene;
uniform sampler2D tSceneDepth;
uniform sampler2D tDepth;
uniform sampler2D tNormal;
uniform sampler2D tThickness;
uniform vec2 uTexel;
uniform vec3 uAbsorption;
uniform vec3 uDyeAbsorption;
uniform float uScattering;
uniform float uDyeScattering;
uniform vec3 uAlbedo;
uniform float uIndex;
uniform float uShininess;
uniform float uSpecular;
uniform float uWrap;
varying vec2 vUv;

// Shares of the lamp and of the room that a matte white body gives back; tuned for appearance, beside tissue.
const float BODY_LIGHT = 0.29;
const float ROOM_LIGHT = 0.05;

// The nearest of the four texels around: at a rim some are empty.
float liquidDepth() {
  float nearest = 1e9;
  for (int k = 0; k < 4; k++) {
    vec2 by = 0.5 * vec2(k % 2 == 0 ? -1.0 : 1.0, k < 2 ? -1.0 : 1.0);
    float z = texture2D(tDepth, vUv + by * uTexel).r;
    if (z > 0.0) nearest = min(nearest, z);
  }
  return nearest;
}

// A dark room with soft lamps above and the lit ground below.
vec3 surroundings(vec3 away) {
  float height = dot(away, uUp);
  vec3 colour = mix(0.55 * uGround, vec3(0.06, 0.065, 0.075), smoothstep(-0.3, 0.2, height));
  return colour + vec3(0.50, 0.54, 0.58) * smoothstep(0.35, 0.6, height) * (1.0 - smoothstep(0.82, 0.97, height));
}

void main() {
  vec3 under = texture2D(tScene, vUv).rgb;
  vec4 surface = texture2D(tNormal, vUv);
  float cover = smoothstep(0.3, 0.7, surface.a);
  float depth = liquidDepth();
  float solid = distanceOf(texture2D(tSceneDepth, vUv).r);
  if (cover <= 0.0 || depth > solid) {
    gl_FragColor = vec4(under, 1.0);
    return;
  }
  vec3 ray = rayThrough(vUv);
  vec3 point = depth * ray, way = normalize(ray);
  vec3 normal = normalize(surface.xyz);
  vec2 amount = texture2D(tThickness, vUv).rg;
  float dye = amount.x > 0.0 ? amount.y / amount.x : 0.0;
  float thick = min(0.001 * amount.x, (solid - depth) * length(ray));

  vec3 exit = point + thick * refract(way, normal, 1.0 / uIndex);
  vec4 clip = uProjection * vec4(exit, 1.0);
  vec2 bent = clamp(0.5 + 0.5 * clip.xy / clip.w, 0.0, 1.0);
  if (distanceOf(texture2D(tSceneDepth, bent).r) < depth) bent = vUv;
  vec3 behind = fromScreen(texture2D(tScene, bent).rgb);

  vec3 toLamp = uLamp - point;
  float lamp = uLampPower / dot(toLamp, toLamp) * vignette();
  float room = uLampPower / dot(point, point) * vignette();
  toLamp = normalize(toLamp);
  float facing = max((dot(normal, toLamp) + uWrap) / (1.0 + uWrap), 0.0);
  float scattering = mix(uScattering, uDyeScattering, dye);
  vec3 kept = exp(-(mix(uAbsorption, uDyeAbsorption, dye) + scattering) * thick);
  float above = 0.5 + 0.5 * dot(normal, uUp);
  vec3 body = uAlbedo * (BODY_LIGHT * lamp * facing + ROOM_LIGHT * room * above) * (1.0 - exp(-scattering * thick));
  vec3 transmitted = behind * kept + body;

  vec3 away = reflect(way, normal);
  float r0 = (uIndex - 1.0) / (uIndex + 1.0);
  r0 *= r0;
  float mirrored = r0 + (1.0 - r0) * pow(1.0 - clamp(-dot(way, normal), 0.0, 1.0), 5.0);
  float glint = uSpecular * pow(max(dot(away, toLamp), 0.0), uShininess);
  float theatre = 0.3 * uSpecular * pow(max(dot(away, uTheatreLamp), 0.0), 0.5 * uShininess);
  vec3 reflection = surroundings(away) * room + glint * lamp + theatre * room;

  vec3 colour = toScreen(mix(transmitted, reflection, mirrored)) + dither();
  gl_FragColor = vec4(mix(under, colour, cover), 1.0);
}
`;
