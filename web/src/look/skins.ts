// All that a scene paints on its surfaces: textures by name, the table of burn stages, the temperature view.

import type { IUniform, WebGLRenderer } from "three";
import type { ArrayTiles, Column, Scene, Texture } from "../protocol";
import { STAGES_TABLE, StageStrip } from "./burn_stages";
import { SkinTexture } from "./skin_texture";
import type { Skin } from "./tissue_material";

export class Skins {
  private textures: SkinTexture<Texture>[] = [];
  private readonly stages = new StageStrip();
  private readonly heatView: IUniform<number> = { value: 0 };
  private columns: Column[] | null = null;

  setScene(scene: Scene): void {
    for (const texture of this.textures) texture.dispose();
    this.textures = scene.textures.map((info) => new SkinTexture(info));
    const table = scene.tables.find((candidate) => candidate.name === STAGES_TABLE);
    this.columns = table?.columns ?? null;
    this.stages.reset();
    if (table !== undefined) this.stages.set(table.columns, table.rows);
  }

  clear(): void {
    for (const texture of this.textures) texture.clear();
  }

  of(surface: string): Skin {
    const find = (role: Texture["role"]) =>
      this.textures.find(({ info }) => info.surface === surface && info.role === role) ?? null;
    return { burn: find("burn"), ink: find("ink"), film: find("film"), stages: this.stages.texture, heatView: this.heatView, cut: false };
  }

  texture(name: string): SkinTexture<Texture> | null {
    return this.textures.find(({ info }) => info.name === name) ?? null;
  }

  /** False when it is no texture's. */
  put(tiles: ArrayTiles, side: number): boolean {
    const texture = this.texture(tiles.name);
    texture?.put(tiles, side);
    return texture !== null;
  }

  /** True when burns look different from now on. */
  setTables(tables: Record<string, number[][]>): boolean {
    if (this.columns === null || !(STAGES_TABLE in tables)) return false;
    return this.stages.set(this.columns, tables[STAGES_TABLE]);
  }

  get hasBurn(): boolean {
    return this.textures.some(({ info }) => info.role === "burn");
  }

  showHeat(shown: boolean): void {
    this.heatView.value = shown ? 1 : 0;
  }

  upload(renderer: WebGLRenderer): void {
    for (const texture of this.textures) texture.upload(renderer);
  }
}
