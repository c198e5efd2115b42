import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { ListCase } from '../../components/tenant/trust/lists/testing/verdicts.ts';
import { runDss } from './dss.ts';

const publishedSchema = z.object({ territory: z.string(), list: z.string(), signers: z.array(z.string()) });

/** Territories whose lists the importer refuses: the key of the signer has 2032 bits. */
const refused: readonly string[] = ['NO'];

/** Hashes of the certificates that a signature carries. */
function carriedBy(text: string): readonly string[] {
  const signature = text.slice(text.search(/<(?:\w+:)?SignatureValue/));
  return [...signature.matchAll(/<(?:\w+:)?X509Certificate>([^<]+)</g)].map(([, base64 = '']) =>
    createHash('sha256').update(Buffer.from(base64, 'base64')).digest('hex'),
  );
}

/** A byte of the first certificate of a service changes, the base64 of which stays base64. */
function changedByte(text: string): string {
  const at = text.indexOf('X509Certificate>', text.search(/<(?:\w+:)?TrustServiceProviderList/)) + 300;
  return `${text.slice(0, at)}${text[at] === 'A' ? 'B' : 'A'}${text.slice(at + 1)}`;
}

const largestBytes = 1_000_000;

/**
 * The lists of member states that EU DSS has among its tests, of 2019, with the signer of those that the list of lists names
 * whose certificate the signature carries. Each is judged at its issue.
 *
 * @param full all of them, each once more with a changed byte; else those below 1 MB
 */
export async function publishedLists(dir: string, full: boolean): Promise<ListCase[]> {
  const folder = join(dir, 'published');
  mkdirSync(folder, { recursive: true });
  const lines = await runDss('published', [[folder]]);
  return lines.flatMap((line): ListCase[] => {
    const { territory, list, signers } = publishedSchema.parse(JSON.parse(line));
    const text = readFileSync(list, 'utf8');
    const carried = carriedBy(text);
    const signer = signers.find((file) => carried.some((hash) => file.includes(hash)));
    if (signer === undefined)
      throw new Error(`the list of ${territory} carries no certificate of its signers`);
    if (!full && text.length > largestBytes) return [];
    const issued = /ListIssueDateTime>([^<]+)</.exec(text)?.[1] ?? '';
    const pinned = { signer: readFileSync(signer), atMs: Date.parse(issued) };
    const name = `published: ${territory}`;
    const expected = refused.includes(territory) ? 'refused' : 'accepted';
    const changed = { ...pinned, name: `${name}, a changed byte`, expected: 'refused' } as const;
    return [
      { name, document: readFileSync(list), ...pinned, expected },
      ...(full ? [{ ...changed, document: changedByte(text) }] : []),
    ];
  });
}
