// Pictures made of pictures: a material over the whole of a target.

import { BufferAttribute, BufferGeometry, Camera, Mesh, NearestFilter, NoBlending, Scene, ShaderMaterial, WebGLRenderTarget } from "three";
import type { IUniform, PixelFormat, TextureDataType, Vector2, WebGLRenderer } from "three";

export type Uniforms = Record<string, IUniform>;

const SCREEN_VERTEX = /* glsl */ `
varying vec2 vUv;

void main() {
  vUv = 0.5 + 0.5 * position.xy;
  gl_Position = vec4(position.xy, 0.0, 1.0);
}
`;

/** Draws a material over the whole of a target. */
export class ScreenPass {
  private readonly scene = new Scene();
  private readonly camera = new Camera();
  private readonly mesh = new Mesh(new BufferGeometry(), new ShaderMaterial());

  constructor() {
    this.mesh.geometry.setAttribute("position", new BufferAttribute(new Float32Array([-1, -1, 0, 3, -1, 0, -1, 3, 0]), 3));
    this.mesh.frustumCulled = false;
    this.scene.add(this.mesh);
  }

  draw(renderer: WebGLRenderer, material: ShaderMaterial, target: WebGLRenderTarget | null): void {
    this.mesh.material = material;
    renderer.setRenderTarget(target);
    renderer.render(this.scene, this.camera);
  }

  dispose(): void {
    this.mesh.geometry.dispose();
  }
}

export function plainTarget(size: Vector2, format: PixelFormat, type: TextureDataType, depthBuffer: boolean): WebGLRenderTarget {
  return new WebGLRenderTarget(size.x, size.y, {
    format, type, depthBuffer, minFilter: NearestFilter, magFilter: NearestFilter, generateMipmaps: false,
  });
}

export function screenMaterial(name: string, fragmentShader: string, uniforms: Uniforms): ShaderMaterial {
  return new ShaderMaterial({
    name, uniforms, vertexShader: SCREEN_VERTEX, fragmentShader, blending: NoBlending, depthTest: false, depthWrite: false,
  });
}

export function setUniforms(material: ShaderMaterial, values: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(values)) material.uniforms[name].value = value;
}
