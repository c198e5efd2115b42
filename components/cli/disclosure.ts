import { MAX_DISCLOSURE_BYTES } from '#core/blueprint/disclosure/file.ts';
import {
  type DisclosureVerdict,
  type ProvenDisclosure,
  verifyDisclosure,
} from '#core/blueprint/disclosure/verify.ts';
import type { Verifier } from '#core/crypto/verify.ts';
import { concatBytes } from '#core/encoding/text.ts';
import { cliError } from './errors.ts';

/**
 * Verifies a disclosure file.
 * @param key expected key of the checkpoint, for callers that know it from another source
 * @throws AppError unprocessable FILE_TOO_LARGE
 */
export async function verifyDisclosureFile(
  chunks: AsyncIterable<Uint8Array>,
  verifier: Verifier,
  key?: string,
): Promise<DisclosureVerdict> {
  const verdict = verifyDisclosure(await readWhole(chunks), verifier);
  if (!('proven' in verdict) || key === undefined || key === verdict.proven.checkpointKey) return verdict;
  const message = `The checkpoint is signed by ${verdict.proven.checkpointKey}, which is another key`;
  return { findings: [{ code: 'KEY_MISMATCH', message, location: '/checkpointKey' }] };
}

async function readWhole(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of chunks) {
    sizeBytes += chunk.length;
    if (sizeBytes > MAX_DISCLOSURE_BYTES) {
      throw cliError('FILE_TOO_LARGE', `A disclosure file has at most ${MAX_DISCLOSURE_BYTES} bytes`);
    }
    parts.push(chunk);
  }
  return concatBytes(parts);
}

/** What a verified file shows and proves, for people. */
export function provenText({ record, envelope, group, shown, ...place }: ProvenDisclosure): string {
  const { docket, checkpoint, checkpointKey } = place;
  const others = envelope.groups.length - 1;
  const rows: readonly (readonly [string, string])[] = [
    ['register', `${record.registerId}, log ${checkpoint.origin}`],
    ['transaction', `${record.txId}, ${record.type} of ${record.createdAt}`],
    ['signed by', record.senderAddress],
    [
      'sealed',
      `${docket.timestamp} in docket ${docket.docketNumber}; the checkpoint has ${checkpoint.size} dockets`,
    ],
    [
      'workflow',
      `blueprint ${envelope.blueprintId}, action ${envelope.actionId}, instance ${envelope.instanceId}`,
    ],
    ['shown to', group.jwe.recipients.map(({ header }) => header.kid).join(', ')],
    ['disclosed by', shown.fields.join(', ')],
    ['key', checkpointKey],
  ];
  const lines = rows.map(([name, value]) => `  ${name.padEnd(13)} ${plain(value)}\n`);
  const data = plain(JSON.stringify(shown.data, null, 2)).replaceAll('\n', '\n  ');
  return [
    'Everything verifies.\n',
    ...lines,
    `  data\n  ${data}\n`,
    'This proves that the sender signed this data as one whole group of the transaction, that it named these recipients\n',
    'for it, and that the register sealed the transaction. It does not prove that a recipient has read the group',
    others === 0 ? '.\n' : `; ${others} other ${others === 1 ? 'group is' : 'groups are'} not shown.\n`,
    'The register is that of the key above: compare it with one that you know from another source (--key).\n',
  ].join('');
}

/** Why a file proves nothing, for people. */
export function refusedText({ findings }: DisclosureVerdict): string {
  const lines = findings.map(
    ({ location, code, message }) =>
      `  ${location === '' ? 'the file' : location}: ${code}: ${plain(message)}\n`,
  );
  return `Does not verify:\n${lines.join('')}`;
}

/** Text without the characters that control a terminal or turn its direction. */
function plain(text: string): string {
  return text.replaceAll(/[^\P{C}\n]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
