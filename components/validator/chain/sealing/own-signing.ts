import { encodeBase64 } from '#core/encoding/base64.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { formatLedgerTimestamp } from '#core/encoding/timestamp.ts';
import { isAppError } from '#core/errors/errors.ts';
import { type ConsensusMessage, signBytes, type ValidatorMember } from '#core/ledger/consensus.ts';
import type { DocketHeader } from '#core/ledger/docket.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Logger } from '#kit/log/log.ts';
import type { Docket } from '../building/docket.ts';
import type { Machine } from '../consensus/machine-state.ts';
import type { UnsignedMessage, UnsignedProposal, UnsignedVote, Value } from '../consensus/messages.ts';
import type { LogRecord, OwnMessage } from '../records/entries.ts';
import type { RegisterState } from '../state/state.ts';
import { OwnMessages } from './own-messages.ts';
import type { Signer } from './ports.ts';
import type { RoundTimers } from './round-timers.ts';
import { identity, signable } from './sign-bytes.ts';
import { signerFor } from './signer-key.ts';
import type { VoteDraft } from './vote.ts';

export interface SigningPorts {
  readonly self: string;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly log: Logger;
  append(record: LogRecord): Promise<number>;
  /** Drafts the attestation of a docket that this member decides alone. */
  draftAttestation(header: DocketHeader, members: readonly ValidatorMember[]): VoteDraft;
  /** The log or the signing component failed permanently; nothing more is signed. */
  onFailed(error: unknown): void;
}

interface OwnSigningOptions extends SigningPorts {
  readonly timers: Pick<RoundTimers, 'hold' | 'clear'>;
  /** The state and the machine of the current height. */
  place(): { readonly state: RegisterState; readonly machine: Readonly<Machine> };
  isStopped(): boolean;
  /** The docket of this height with a value, if available. */
  findDocket(value: Omit<Value, 'timestamp'>): Docket | undefined;
  /** A message is signed and on disk. */
  onSigned(message: UnsignedMessage, timestamp: string, signature: string): void;
  /** The precommit of a set of one is signed, perhaps without proposal and prevote: it decides its docket. */
  onDecisive(precommit: UnsignedVote, timestamp: string, signature: string): void;
  /** The signer does not sign a message. */
  onRefused(message: UnsignedMessage): void;
}

interface BatchDraft {
  readonly messages: readonly ConsensusMessage[];
  readonly attestation: VoteDraft | undefined;
}

/** Refusals of the signer that silence this member at one position, or where the register names an unknown key. */
const silencingCodes: readonly string[] = ['DOUBLE_SIGN_REFUSED', 'SIGNING_KEY_UNKNOWN'];
/** A signing component of an earlier version does not know batches. */
const unknownBatchCode = 'INVALID_REQUEST';

/**
 * Signs the own messages of one register: each is logged, signed, and released once both are done. Votes that follow an own
 * proposal with certainty are signed with it in one request, and released when the machine asks for the same bytes, or after a
 * restart, when the log holds the batch.
 */
export class OwnSigning {
  readonly #options: OwnSigningOptions;
  readonly #ownMessages: OwnMessages;
  /** Signatures of votes that the machine has not asked for yet, by the hex of the signed bytes. */
  readonly #ahead = new Map<string, string>();

  constructor(options: OwnSigningOptions) {
    this.#options = options;
    this.#ownMessages = new OwnMessages(options);
  }

  /** Own messages of this height, as logged. */
  get all(): readonly OwnMessage[] {
    return this.#ownMessages.all;
  }

  get signsBatches(): boolean {
    return this.#signer.signsBatches;
  }

  /** Begins a height, with the messages that the log held of it and the round of the latest polka that it contains. */
  begin(own: readonly OwnMessage[] = [], polkaRound = -1): void {
    this.#ahead.clear();
    this.#ownMessages.begin(own);
    this.#ownMessages.markPolka(polkaRound);
  }

  /** Signs a message for which the machine asks. */
  sign(message: UnsignedMessage): void {
    const signature = this.#takeAhead(message);
    if (signature === undefined) void this.#signOne(message, undefined);
    else this.#options.onSigned(message, this.#timestampOf(message), signature);
  }

  /**
   * Signs a proposal and the votes that follow it. A precommit that is signed before the machine asks for it must survive a
   * crash as a lock, so a batch with one is on disk before it is signed.
   */
  async signTogether(proposal: UnsignedProposal, votes: readonly UnsignedVote[]): Promise<void> {
    const release = this.#options.timers.hold();
    const messages = [proposal, ...votes];
    const isAlone = votes.some(({ kind }) => kind === 'precommit');
    try {
      const request = this.#draft(messages);
      const { lastSignature } = this.#ownMessages;
      const onDisk = Promise.all(messages.map((message) => this.#log(message, this.#timestampOf(message))));
      const before = isAlone ? Promise.all([lastSignature, onDisk]) : lastSignature;
      const signed = before.then(() => (this.#isNeeded(proposal) ? this.#request(request) : undefined));
      const [signatures] = await Promise.all([signed, onDisk]);
      if (signatures === undefined) return;
      for (const [index, message] of messages.entries()) {
        const signature = signatures[index] ?? '';
        this.#ownMessages.addSignature(message, signature);
        if (message !== proposal) this.#ahead.set(this.#bytesOf(message), signature);
      }
      this.#options.onSigned(proposal, this.#timestampOf(proposal), signatures[0] ?? '');
    } catch (error) {
      this.#onTogetherFailed(proposal, votes, error);
    } finally {
      release();
    }
  }

  /**
   * Releases the logged messages after a restart; those without a signature are signed again. The messages from which the height
   * resumes are returned when votes that were logged in advance are withdrawn.
   */
  async repeat(own: readonly OwnMessage[]): Promise<readonly OwnMessage[] | undefined> {
    const unsigned = own.filter(({ signature }) => signature === undefined);
    const isBatch = isLoggedTogether(unsigned);
    const isAlone = isBatch && this.#options.place().state.members.length === 1;
    const isTogether = isAlone || (isBatch && this.signsBatches);
    // All signatures are requested at once, so that a timer firing meanwhile cannot get a later message signed before them.
    const signing = own.map(async (each) => {
      if (each.signature !== undefined) this.#options.onSigned(each.message, each.timestamp, each.signature);
      else if (!isTogether) await this.#signOne(each.message, each);
    });
    const together = isTogether ? this.#repeatTogether(unsigned, isAlone) : Promise.resolve([]);
    const [withdrawn] = await Promise.all([together, ...signing]);
    return withdrawn.length === 0 ? undefined : own.filter((each) => !withdrawn.includes(each));
  }

  /** Returns the votes that are withdrawn. */
  async #repeatTogether(unsigned: readonly OwnMessage[], isAlone: boolean): Promise<readonly OwnMessage[]> {
    const { timers, place, isStopped } = this.#options;
    const release = timers.hold();
    const { height } = place().machine.rules;
    try {
      await this.#signLogged(unsigned);
      return [];
    } catch (error) {
      if (place().machine.rules.height !== height || isStopped()) return [];
      if (isAlone && isRefusal(error)) return await this.#repeatAlone(unsigned);
      await this.#repeatOneByOne(unsigned, error);
      return [];
    } finally {
      release();
    }
  }

  async #signLogged(unsigned: readonly OwnMessage[]): Promise<void> {
    const messages = unsigned.map(({ message }) => message);
    const signatures = await this.#request(this.#draft(messages));
    for (const [index, message] of messages.entries()) {
      this.#ownMessages.addSignature(message, signatures[index] ?? '');
    }
    for (const [index, { message, timestamp }] of unsigned.entries()) {
      this.#options.onSigned(message, timestamp, signatures[index] ?? '');
    }
  }

  /**
   * A set of one whose batch is not signed as such. Its precommit may have been released before the crash, and decides the docket
   * alone. When that is refused, nothing was released: the votes are withdrawn.
   */
  async #repeatAlone(unsigned: readonly OwnMessage[]): Promise<readonly OwnMessage[]> {
    const votes = unsigned.filter(({ message }) => message.kind !== 'proposal');
    const last = votes.at(-1);
    try {
      if (last?.message.kind === 'precommit') {
        await this.#decideAlone(last, last.message);
        return [];
      }
    } catch (error) {
      if (this.#options.isStopped()) return [];
      if (!isRefusal(error)) {
        this.#options.onFailed(error);
        return [];
      }
    }
    this.#withdraw(votes.map(({ message }) => message));
    this.#options.timers.clear();
    return votes;
  }

  async #decideAlone({ timestamp }: OwnMessage, precommit: UnsignedVote): Promise<void> {
    const bytes = await this.#signer.sign({
      kind: 'consensus',
      message: this.#signable(precommit, timestamp),
    });
    const signature = encodeBase64(bytes);
    this.#ownMessages.addSignature(precommit, signature);
    this.#options.onDecisive(precommit, timestamp, signature);
  }

  async #repeatOneByOne(unsigned: readonly OwnMessage[], error: unknown): Promise<void> {
    if (isUnknownBatch(error)) {
      await Promise.all(unsigned.map((each) => this.#signOne(each.message, each)));
      return;
    }
    for (const { message } of unsigned) this.#onUnsigned(message, error);
  }

  get #signer(): Signer {
    const { members } = this.#options.place().state;
    return signerFor(members, this.#options.self, this.#options.signer);
  }

  /** `logged` is the own message that is on disk already. */
  async #signOne(message: UnsignedMessage, logged: OwnMessage | undefined): Promise<void> {
    const timestamp = logged?.timestamp ?? this.#timestampOf(message);
    const request = { kind: 'consensus', message: this.#signable(message, timestamp) } as const;
    try {
      const onDisk = logged === undefined ? this.#log(message, timestamp) : Promise.resolve();
      // A vote for a docket is reproducible from the docket and can be signed again after a crash: it waits for the last signature only.
      const isFree = message.kind !== 'proposal' && message.value === undefined;
      const before = isFree && logged === undefined ? onDisk : this.#ownMessages.lastSignature;
      const signed = before.then(() => (this.#options.isStopped() ? undefined : this.#signer.sign(request)));
      const [bytes] = await Promise.all([signed, onDisk]);
      if (bytes === undefined) return;
      const signature = encodeBase64(bytes);
      this.#ownMessages.addSignature(message, signature);
      this.#options.onSigned(message, timestamp, signature);
    } catch (error) {
      this.#onUnsigned(message, error);
    }
  }

  /** Whether the height of a message is still open. */
  #isNeeded({ height }: UnsignedMessage): boolean {
    const { isStopped, place } = this.#options;
    return !isStopped() && place().machine.rules.height === height;
  }

  /** Drafts the request of a batch. One that decides its docket brings the attestation too. */
  #draft(messages: readonly UnsignedMessage[]): BatchDraft {
    const { draftAttestation, findDocket, place } = this.#options;
    const precommit = messages.find(({ kind }) => kind === 'precommit');
    const docket = precommit?.value && findDocket(precommit.value);
    return {
      messages: messages.map((message) => this.#signable(message, this.#timestampOf(message))),
      attestation: docket && draftAttestation(docket.header, place().state.members),
    };
  }

  /** Requests the signatures of a batch, in standard base64. */
  async #request({ messages, attestation }: BatchDraft): Promise<string[]> {
    const signatures = await this.#signer.signBatch({ messages, attestation: attestation?.request });
    if (signatures.attestation !== undefined) attestation?.complete(signatures.attestation);
    return signatures.messages.map(encodeBase64);
  }

  /** Logs a message with the locks that the machine has then; a precommit for a docket is a lock on it. */
  #log(message: UnsignedMessage, timestamp: string): Promise<void> {
    const { machine, state } = this.#options.place();
    const isAhead =
      message.kind === 'precommit' && message.value !== undefined && machine.step !== 'precommit';
    const held = isAhead && { round: message.round, value: { ...message.value, timestamp } };
    return this.#ownMessages.append(message, timestamp, {
      registerId: state.registerId,
      machine: held ? { rounds: machine.rounds, locked: held, valid: held } : machine,
      walletAddress: this.#signer.key.walletAddress,
      findDocket: (value) => this.#options.findDocket(value),
    });
  }

  #signable(message: UnsignedMessage, timestamp: string): ConsensusMessage {
    return signable(this.#options.place().state, message, timestamp);
  }

  /** A proposal and a vote for a docket carry the docket's timestamp, a nil vote the current time. */
  #timestampOf(message: UnsignedMessage): string {
    const timestamp = message.kind === 'proposal' ? message.value.timestamp : message.timestamp;
    return timestamp ?? formatLedgerTimestamp(this.#options.clock.nowMicros());
  }

  #bytesOf(message: UnsignedMessage): string {
    return encodeHex(signBytes(this.#signable(message, this.#timestampOf(message))));
  }

  #takeAhead(message: UnsignedMessage): string | undefined {
    if (this.#ahead.size === 0) return undefined;
    const bytes = this.#bytesOf(message);
    const signature = this.#ahead.get(bytes);
    this.#ahead.delete(bytes);
    return signature;
  }

  #onTogetherFailed(proposal: UnsignedProposal, votes: readonly UnsignedVote[], error: unknown): void {
    if (this.#options.isStopped()) return;
    if (isRefusal(error)) this.#withdraw(votes);
    if (!isUnknownBatch(error)) {
      this.#onUnsigned(proposal, error);
      return;
    }
    // Undefined once the height has ended.
    const logged = this.all.find(({ message }) => message === proposal);
    if (logged !== undefined) void this.#signOne(proposal, logged);
  }

  /** The last one first, so that after a crash the log holds a batch or its beginning. */
  #withdraw(votes: readonly UnsignedMessage[]): void {
    for (const vote of votes.toReversed()) this.#ownMessages.withdraw(vote);
  }

  #onUnsigned(message: UnsignedMessage, error: unknown): void {
    if (this.#options.isStopped()) return;
    if (!isAppError(error) || !silencingCodes.includes(error.code)) {
      this.#options.onFailed(error);
      return;
    }
    const { registerId } = this.#options.place().state;
    const { kind, height, round } = message;
    const details = { registerId, height, round, message: kind, code: error.code };
    this.#options.log.warn(details, 'the signer refused: conflicting earlier signature, or unknown key');
    this.#options.onRefused(message);
  }
}

/** Whether messages are a proposal and votes for its docket in its round, by rising kind. */
function isLoggedTogether(messages: readonly OwnMessage[]): boolean {
  const [first, ...votes] = messages;
  if (first?.message.kind !== 'proposal' || votes.length === 0) return false;
  const { round, value: proposed } = first.message;
  const kinds = votes.map(({ message }) => message.kind).join();
  const isAbout = ({ message: { round: at, value } }: OwnMessage) =>
    at === round && value !== undefined && identity(value) === identity(proposed);
  return votes.every(isAbout) && (kinds === 'prevote' || kinds === 'prevote,precommit');
}

function isUnknownBatch(error: unknown): boolean {
  return isAppError(error) && error.code === unknownBatchCode;
}

/** Whether the signer answered without signing. */
function isRefusal(error: unknown): boolean {
  return isUnknownBatch(error) || (isAppError(error) && silencingCodes.includes(error.code));
}
