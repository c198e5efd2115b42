import { join } from 'node:path';
import { serverTags } from '../../tools/images/servers.ts';

/** Tag of the images of the installation, and version of its validators. */
export const thisVersion = process.env['IMAGE_TAG'] ?? '0.1.0';

/** The next one: the images of `twice` are there by this tag too. */
export const nextVersion = thisVersion.replace(/\d+$/, (patch) => String(Number(patch) + 1));

/** Images that are there in two versions. */
export const twice = ['validator', 'operator'];

/** Reference of an image. */
export function imageOf(name: string, version: string): string {
  return `chancery.local/${name}:${version}`;
}

/** Tags of the images of PostgreSQL and NATS, by name: no release changes them. */
export const tagsOfServers: Readonly<Record<string, string>> = serverTags(join(import.meta.dirname, '../..'));
