import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { serverNames } from '../../../tools/images/servers.ts';
import { must } from '../../cluster/kubectl.ts';
import type { Row } from '../report.ts';

/** Images without a program of this repository. */
const foreign: readonly string[] = serverNames.map((name) => `${name}.tar`);

/** Bytes of the blobs of OCI archives, each counted once, from the output of `tar -tv`. */
export function blobBytes(listings: readonly string[]): number {
  const blobs = new Map<string, number>();
  for (const line of listings.flatMap((listing) => listing.split('\n'))) {
    const found = /^\S+ +\S+ +(\d+) .* (?:\.\/)?blobs\/(\w+\/[0-9a-f]+)$/.exec(line);
    if (found?.[1] !== undefined && found[2] !== undefined) blobs.set(found[2], Number(found[1]));
  }
  return [...blobs.values()].reduce((sum, size) => sum + size, 0);
}

/** The images that a user pulls, as `make images` wrote them. */
export async function imageSizes(folder: string): Promise<Row> {
  const archives = readdirSync(folder).filter((each) => each.endsWith('.tar') && !foreign.includes(each));
  const listings = await Promise.all(archives.map((each) => must('tar', ['-tvf', join(folder, each)])));
  return {
    measure: `${archives.length} images, shared layers once, compressed`,
    ours: archives.length === 0 ? [] : [blobBytes(listings) / 1e6],
    raw: [],
    unit: 'MB',
    bound: { kind: 'absolute', atMost: 80 },
  };
}
