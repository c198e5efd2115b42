import type { Verifier } from '../../crypto/verify.ts';
import { decodeBase64Any } from '../../encoding/base64.ts';
import { encodeHex } from '../../encoding/hex.ts';
import { equalBytes } from '../../encoding/text.ts';
import { type Violation, violation } from '../../errors/errors.ts';
import {
  checkpointNote,
  checkpointOrigin,
  findCheckpoint,
  NOTE_KINDS,
  type NoteKey,
  type NoteSignature,
  noteKeyHash,
  noteLine,
  type ParsedCheckpoint,
  verifyCheckpoint,
} from '../checkpoint.ts';
import { activeMembers, type LedgerRules } from '../governance/rules.ts';

/** State of the register at the docket of a checkpoint. */
interface CheckpointContext {
  readonly networkId: string;
  readonly registerId: string;
  readonly size: number;
  readonly rootHash: Uint8Array;
  /** The rules after the last docket. */
  readonly rules: LedgerRules;
  readonly verifier: Verifier;
}

/** The key of a register's checkpoints: the key that signed its genesis. */
export function checkpointKey({
  networkId,
  registerId,
  rules,
}: Pick<CheckpointContext, 'networkId' | 'registerId' | 'rules'>): NoteKey {
  const name = checkpointOrigin(networkId, registerId);
  return { name, kind: NOTE_KINDS.log, publicKey: decodeBase64Any(rules.systemKey.publicKey) };
}

/** Keys of the validators that may cosign the checkpoint of the last docket, by validator id. */
export function cosignerKeys(
  networkId: string,
  members: readonly { readonly validatorId: string; readonly publicKey: string }[],
): ReadonlyMap<string, NoteKey> {
  return new Map(
    members.map(({ validatorId, publicKey }) => {
      const name = `${networkId}/validators/${validatorId}`;
      return [validatorId, { name, kind: NOTE_KINDS.cosignature, publicKey: decodeBase64Any(publicKey) }];
    }),
  );
}

function isOf(line: NoteSignature, key: NoteKey): boolean {
  return line.name === key.name && equalBytes(line.keyHash, noteKeyHash(key));
}

const refuse = (message: string, field: string): Violation[] => [
  violation('CHECKPOINT_INVALID', message, field),
];

function judgeBody(checkpoint: ParsedCheckpoint, context: CheckpointContext): Violation[] {
  if (checkpoint.origin !== checkpointOrigin(context.networkId, context.registerId)) {
    return refuse('The checkpoint is of another log', 'origin');
  }
  if (checkpoint.size !== context.size) return refuse('The checkpoint is of another size', 'size');
  if (!equalBytes(checkpoint.rootHash, context.rootHash)) {
    return refuse(`The root of the log is ${encodeHex(context.rootHash)}`, 'root');
  }
  return [];
}

/**
 * Judges the signed checkpoint of the last docket: size and root, the line of the log, and one line at most of each
 * validator of that height. C2SP readers ignore lines of unknown keys. Here every key is known, so a line of any other
 * key is refused and a note has one spelling.
 * @returns the validators that cosigned, or the violations
 */
export function judgeCheckpoint(
  note: string,
  context: CheckpointContext,
): { readonly cosigners: readonly string[] } | Violation[] {
  const checkpoint = findCheckpoint(note);
  if (checkpoint === undefined) return refuse('The checkpoint is malformed', 'note');
  const body = judgeBody(checkpoint, context);
  if (body.length > 0) return body;
  if (context.rules.systemKey.algorithm !== 'ED25519') {
    return refuse('The key of the genesis signs no checkpoints', 'key');
  }
  const log = checkpointKey(context);
  const members = cosignerKeys(context.networkId, activeMembers(context.rules));
  const keys = [log, ...members.values()];
  const signed = checkpoint.signatures.map((line) => keys.find((key) => isOf(line, key)));
  const lines = checkpoint.signatures.map(({ blob }, place) => {
    const key = signed[place];
    return key === undefined ? '' : noteLine(key, blob);
  });
  const isPlain = new Set(signed).size === signed.length && checkpointNote(checkpoint.body, lines) === note;
  if (!isPlain) return refuse('A line of the checkpoint is by an unknown key, or there twice', 'signatures');
  const verified = signed.every(
    (key) => key !== undefined && verifyCheckpoint(context.verifier, checkpoint, key),
  );
  if (!signed.includes(log) || !verified) {
    return refuse('A signature of the checkpoint does not verify', 'signatures');
  }
  const cosigners = [...members]
    .filter(([, key]) => signed.includes(key))
    .map(([validatorId]) => validatorId);
  return { cosigners };
}
