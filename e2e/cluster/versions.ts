import { join } from 'node:path';
import { serverTags } from '../../tools/images/servers.ts';

/** Tag of the images of the installation, and version of its validators. */
export const thisVersion = process.env['IMAGE_TAG'] ?? '0.1.0';

/** The next version; the images of `twice` also have this tag. */
export const nextVersion = thisVersion.replace(/\d+$/, (patch) => String(Number(patch) + 1));

/** Images in two versions. */
export const twice = ['validator', 'operator'];

/** Reference of an image. */
export function imageOf(name: string, version: string): string {
  return `chancery.local/${name}:${version}`;
}

/** Tags of the images of PostgreSQL and NATS, by name; they do not follow the releases. */
export const tagsOfServers: Readonly<Record<string, string>> = serverTags(join(import.meta.dirname, '../..'));
