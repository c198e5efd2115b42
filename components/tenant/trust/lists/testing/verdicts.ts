import { X509Certificate } from 'node:crypto';
import { isAppError } from '#core/errors/errors.ts';
import { createLogger } from '#kit/log/log.ts';
import { readList } from '../reading/read-list.ts';
import { createListReader, type ListReader } from '../reading/reader.ts';
import { prepareLibrary } from '../xml/verify.ts';

/** A list with the signer that its readers pin. */
export interface ListCase {
  readonly name: string;
  readonly document: string | Uint8Array;
  /** The certificate of the signer, DER. */
  readonly signer: Uint8Array;
  /** Its readers' time. */
  readonly atMs: number;
  /** SHA-256 of the certificates that are its anchors, hex, in order; or what all readers must agree in. */
  readonly expected: readonly string[] | 'accepted' | 'refused';
}

/** Anchors of an accepted list, SHA-256 of the certificates, in order; or why it is refused. */
export interface Verdict {
  readonly anchors?: readonly string[];
  readonly reason?: string;
}

/** The importer's verdict. What a document makes the libraries throw is its fault, as in the thread of the importer. */
async function importVerdict(
  read: ListReader['read'],
  { document, signer, atMs }: ListCase,
): Promise<Verdict> {
  const fingerprint = new X509Certificate(signer).fingerprint256;
  const pin = { signerSha256: fingerprint.replaceAll(':', '').toLowerCase(), nowMs: atMs };
  try {
    const { anchors } = await read(Buffer.from(document), pin);
    return { anchors: anchors.map(({ thumbprint }) => thumbprint).toSorted() };
  } catch (error) {
    if (isAppError(error, 'internal') || !(error instanceof Error)) throw error;
    return { reason: error.message };
  }
}

/** The importer's verdicts, each in a thread of its own, which has limits. */
export async function importInThreads(cases: readonly ListCase[]): Promise<Verdict[]> {
  const reader = createListReader({ log: createLogger({ service: 'trust-lists', level: 'error' }) });
  const verdicts: Verdict[] = [];
  try {
    for (const each of cases) verdicts.push(await importVerdict(reader.read, each));
  } finally {
    await reader.close();
  }
  return verdicts;
}

/** The importer's verdicts, without threads. */
export function importHere(cases: readonly ListCase[]): Promise<Verdict[]> {
  prepareLibrary();
  return Promise.all(cases.map((each) => importVerdict(readList, each)));
}
