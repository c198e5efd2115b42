import { sha256 } from '#core/crypto/hash.ts';
import { encodeBase64 } from '#core/encoding/base64.ts';
import { findTimestamp } from '#core/encoding/timestamp.ts';
import { AppError, genericCode } from '#core/errors/errors.ts';
import { voteBytes } from '#core/ledger/attestation.ts';
import { checkpointBody, checkpointOrigin, cosignatureBytes } from '#core/ledger/checkpoint.ts';
import { CONSENSUS_TYPES, type ConsensusMessage, signBytes } from '#core/ledger/consensus.ts';
import { possessionBytes } from '#core/ledger/possession.ts';
import { findDocketHash, parseRegisterId } from '#core/ledger/register-id.ts';
import type { Logger } from '#kit/log/log.ts';
import { DOCKET_SIGNING } from '../custody/contexts.ts';
import { invalid, refusal } from '../errors.ts';
import type { SignerEvents } from './events.ts';
import type { KeptMessage } from './kept-messages.ts';
import {
  heldValidatorKey,
  nextValidatorKey,
  type SystemKey,
  type SystemKeyDeps,
  validatorKey,
} from './keys.ts';
import { judgeSystemSigning, judgeValidatorIdentity, type SigningCaller } from './rules.ts';
import { recordRefusal, refuseAudited } from './sign-control.ts';
import type { GuardedBatch, GuardPosition, SignerStore } from './store.ts';

export interface SignConsensusDeps extends SystemKeyDeps {
  readonly store: SignerStore;
  readonly events: SignerEvents;
  readonly log: Logger;
}

/** An open stream of a validator: its identity, its key, and the fencing epoch that it took. */
export interface OpenedSigner {
  readonly validatorId: string;
  readonly caller: SigningCaller;
  readonly epoch: bigint;
  /** The key that signs; the identity's first key when the stream opens. */
  readonly key: SystemKey;
  /** The newest key of the identity. */
  readonly newestKey: SystemKey;
  /** Other keys of the identity that this stream has used, by public key. */
  readonly held: Map<string, Promise<SystemKey>>;
}

/** The identity to open, and the epoch that the caller holds from an earlier stream; 0 for a caller that starts. */
type Opening = Pick<OpenedSigner, 'validatorId' | 'epoch'>;

/**
 * Takes the next epoch of a validator identity, which fences its older streams from this moment. A caller that names
 * the epoch that it holds keeps that epoch.
 * @throws AppError conflict SIGNER_FENCED when a newer epoch was taken in the meantime; forbidden
 */
export async function openSigner(
  deps: SignConsensusDeps,
  caller: SigningCaller,
  { validatorId, epoch: held }: Opening,
): Promise<OpenedSigner> {
  const attempt = {
    caller,
    registerId: '',
    transactionType: 'OpenSigner',
    transactionId: validatorId,
    derivationPath: DOCKET_SIGNING,
  };
  const code = judgeSystemSigning(DOCKET_SIGNING, caller) ?? judgeValidatorIdentity(validatorId, caller);
  if (code !== undefined) throw await refuseAudited(deps, attempt, code);
  const key = await validatorKey(deps, validatorId);
  const newestKey = await heldValidatorKey(deps, validatorId, undefined);
  const epoch = await takeEpoch(deps, { validatorId, epoch: held });
  deps.log.info({ clientId: caller.clientId, epoch: Number(epoch) }, 'signer opened');
  return { validatorId, caller, epoch, key, newestKey, held: new Map() };
}

async function takeEpoch(deps: SignConsensusDeps, { validatorId, epoch: held }: Opening): Promise<bigint> {
  if (held === 0n) return deps.store.nextEpoch(validatorId);
  const newest = await deps.store.raiseEpoch(validatorId, held);
  if (newest !== held) throw fenced(deps);
  return held;
}

function fenced({ events }: SignConsensusDeps): AppError {
  events.refused('SIGNER_FENCED');
  return refusal('SIGNER_FENCED');
}

/**
 * The same stream with another signing key. The roster of a register names one key of a validator at each height, so
 * the key depends on the message that is signed. All keys of a validator share one signing guard.
 * @param publicKey standard base64; empty for the first key
 * @throws AppError not_found SIGNING_KEY_UNKNOWN
 */
export async function usingKey(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  publicKey: string,
): Promise<OpenedSigner> {
  if (publicKey === '' || publicKey === encodeBase64(opened.key.signer.publicKey)) return opened;
  const cached = opened.held.get(publicKey);
  const loading = cached ?? heldValidatorKey(deps, opened.validatorId, publicKey);
  if (cached === undefined) {
    opened.held.set(publicKey, loading);
    loading.catch(() => opened.held.delete(publicKey));
  }
  return { ...opened, key: await loading };
}

/** The successor of a key of the identity, created on first use. @throws as nextValidatorKey, conflict SIGNER_FENCED */
export async function nextKey(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  afterPublicKey: string,
): Promise<SystemKey> {
  await assertNewest(deps, opened);
  const key = await nextValidatorKey(deps, opened.validatorId, afterPublicKey);
  const { clientId } = opened.caller;
  deps.log.info(
    { clientId, derivationPath: DOCKET_SIGNING, address: key.address },
    'the next key of a validator was requested',
  );
  return key;
}

/**
 * Signs messages of one register, height and round, by rising type: builds the bytes from the fields, takes all positions in one
 * statement, then returns the signatures. A message that was signed before gets the signature that it got then.
 * @throws AppError conflict SIGNER_FENCED, conflict DOUBLE_SIGN_REFUSED for all messages (details: the position signed last),
 * invalid INVALID_CONSENSUS_MESSAGE and the like for fields out of range
 */
export async function signConsensus(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  messages: readonly [ConsensusMessage, ...ConsensusMessage[]],
): Promise<readonly Uint8Array[]> {
  const [first, ...later] = messages;
  const { height, round } = first;
  // The guard row is keyed by the parsed id, so that two spellings of one register use the same row.
  const registerId = parseRegisterId(first.registerId);
  const keep = (message: ConsensusMessage) => signedMessage(opened, { ...message, registerId });
  const batch: GuardedBatch = {
    registerId,
    validatorId: opened.validatorId,
    height: BigInt(height),
    round,
    messages: [keep(first), ...later.map(keep)],
    firstStep: first.type,
  };
  const taken = await deps.store.guard(batch, opened.epoch);
  const released = taken ? signaturesOf(batch) : await storedSignatures(deps, opened, batch);
  for (const { type, docket } of messages) {
    const txId = docket?.docketHash ?? 'nil';
    logSigned(deps, opened, registerId, { docketNumber: height, round, kind: typeName(type), txId });
  }
  return released;
}

function signaturesOf({ messages }: Pick<GuardedBatch, 'messages'>): readonly Uint8Array[] {
  return messages.map(({ signature }) => signature);
}

function signedMessage({ key }: OpenedSigner, message: ConsensusMessage): KeptMessage {
  assertTimestamp(message.timestamp);
  const bytes = signBytes(message);
  return {
    step: message.type,
    digest: Buffer.from(sha256(bytes)),
    signature: Buffer.from(key.signer.sign(bytes)),
  };
}

/**
 * Signs the vote of the specification that approves a decided docket or rejects a proposal. It has no effect on
 * consensus and its text names its kind, so it needs no guard, only the newest epoch.
 */
export async function signAttestation(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  vote: AttestationFields,
): Promise<Uint8Array> {
  const release = attestationOf(deps, opened, vote);
  await assertNewest(deps, opened);
  return release();
}

export interface AttestationFields {
  readonly registerId: string;
  readonly docketHash: string;
  readonly approved: boolean;
  readonly timestamp: string;
}

/**
 * Judges an attestation. The returned function signs it; the caller has made sure that the epoch is the newest one.
 * @throws AppError invalid for fields out of range
 */
export function attestationOf(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  { approved, timestamp, ...vote }: AttestationFields,
): () => Uint8Array {
  const registerId = parseRegisterId(vote.registerId);
  const docketHash = findDocketHash(vote.docketHash);
  if (docketHash === undefined) throw invalid('docketHash is not a SHA-256');
  assertTimestamp(timestamp);
  const bytes = voteBytes({ docketHash, validatorAddress: opened.key.address, approved, timestamp });
  return () => {
    logSigned(deps, opened, registerId, { kind: approved ? 'attestation' : 'rejection', txId: docketHash });
    return opened.key.signer.sign(bytes);
  };
}

/**
 * Signs a C2SP cosignature of a register's checkpoint. The text is built from the fields and cannot be read as a vote,
 * so it needs no guard, only the newest epoch.
 */
export async function signCosignature(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  request: { networkId: string; registerId: string; size: bigint; rootHash: Uint8Array; timeSeconds: bigint },
): Promise<Uint8Array> {
  const registerId = parseRegisterId(request.registerId);
  const { networkId, rootHash } = request;
  const origin = checkpointOrigin(networkId, registerId);
  const body = checkpointBody({ origin, size: safeNumber(request.size), rootHash });
  const bytes = cosignatureBytes(body, safeNumber(request.timeSeconds));
  await assertNewest(deps, opened);
  logSigned(deps, opened, registerId, { kind: 'cosignature', size: Number(request.size) });
  return opened.key.signer.sign(bytes);
}

/** Proof that the identity holds its key, for the genesis of a register. */
export async function signPossession(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  request: { registerId: string },
): Promise<Uint8Array> {
  const registerId = parseRegisterId(request.registerId);
  await assertNewest(deps, opened);
  const publicKey = encodeBase64(opened.key.signer.publicKey);
  const bytes = possessionBytes({ registerId, validatorId: opened.validatorId, publicKey });
  logSigned(deps, opened, registerId, { kind: 'possession' });
  return opened.key.signer.sign(bytes);
}

// Nothing was written, because of an old epoch, repeated messages or a conflict. They are checked in this order.
async function storedSignatures(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  batch: GuardedBatch,
): Promise<readonly Uint8Array[]> {
  await assertNewest(deps, opened);
  const last = await deps.store.position(batch);
  if (last === undefined)
    throw new AppError(
      'unavailable',
      genericCode('unavailable'),
      'the signing position could not be taken; try again',
    );
  const { messages, repeated } = withStored(batch, last);
  const next = messages[repeated];
  if (next === undefined) return signaturesOf({ messages });
  // Nothing can lie between the last of the repeated messages and the next one, so the statement decides again.
  const continued = { ...batch, messages, firstStep: next.step };
  if (repeated > 0 && (await deps.store.guard(continued, opened.epoch))) return signaturesOf(continued);
  const signed = { height: String(last.height), round: String(last.round), step: last.step };
  await recordRefusal(deps, attemptOf(opened, batch), 'DOUBLE_SIGN_REFUSED');
  throw refusal('DOUBLE_SIGN_REFUSED', {
    message: `height ${last.height}, round ${last.round}, step ${last.step} is already signed`,
    details: { signed },
  });
}

/** The messages of a batch, where those at its beginning that were signed before have the stored signature. */
function withStored({ height, round, messages }: GuardedBatch, last: GuardPosition) {
  const isSameRound = last.height === height && last.round === BigInt(round);
  const kept = isSameRound ? last.kept : [];
  const find = ({ step, digest }: KeptMessage) =>
    kept.find((each) => each.step === step && each.digest.equals(digest));
  const [first, ...later] = messages;
  const firstNew = messages.findIndex((message) => find(message) === undefined);
  const orStored = (message: KeptMessage) => find(message) ?? message;
  const repeated = firstNew === -1 ? messages.length : firstNew;
  return { messages: [orStored(first), ...later.map(orStored)] as const, repeated };
}

/** @throws AppError conflict SIGNER_FENCED when a newer stream signs for the identity */
export async function assertNewest(deps: SignConsensusDeps, opened: OpenedSigner): Promise<void> {
  const current = await deps.store.currentEpoch(opened.validatorId);
  if (current === opened.epoch) return;
  throw fenced(deps);
}

function attemptOf(opened: OpenedSigner, { registerId, height, round, messages: [{ step }] }: GuardedBatch) {
  return {
    caller: opened.caller,
    registerId,
    transactionType: typeName(step),
    transactionId: `${height}/${round}/${step}`,
    derivationPath: DOCKET_SIGNING,
  };
}

function typeName(type: number): string {
  const name = Object.entries(CONSENSUS_TYPES).find(([, value]) => value === type)?.[0];
  return name ?? 'unknown';
}

function logSigned(
  deps: SignConsensusDeps,
  opened: OpenedSigner,
  registerId: string,
  fields: Readonly<Record<string, unknown>> & { readonly kind: string },
): void {
  deps.events.signed(fields.kind);
  deps.log.info(
    { clientId: opened.caller.clientId, registerId, derivationPath: DOCKET_SIGNING, ...fields },
    'docket signature',
  );
}

function safeNumber(value: bigint): number {
  if (value <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(value);
  throw invalid('size or time is out of range');
}

function assertTimestamp(text: string): void {
  if (findTimestamp(text) === undefined) {
    throw invalid('timestamp is not an ISO 8601 timestamp with an offset');
  }
}
