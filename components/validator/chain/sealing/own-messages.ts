import type { Docket } from '../building/docket.ts';
import type { Machine } from '../consensus/machine-state.ts';
import type { UnsignedMessage, Value } from '../consensus/messages.ts';
import { votesFor } from '../consensus/round.ts';
import type { LogRecord, OwnMessage } from '../records/entries.ts';

interface OwnMessagesOptions {
  readonly self: string;
  append(record: LogRecord): Promise<number>;
  /** The log failed permanently. */
  onFailed(error: unknown): void;
}

/** The height at which an own message is logged. */
interface MessageContext {
  readonly registerId: string;
  readonly machine: Readonly<Pick<Machine, 'locked' | 'valid' | 'rounds'>>;
  /** Wallet address of the key that signs. */
  readonly walletAddress: string;
  /** The docket of this height with a value, if available. */
  findDocket(value: Omit<Value, 'timestamp'>): Docket | undefined;
}

/** The own consensus messages of one height: each is logged before it is signed, and again with its signature. */
export class OwnMessages {
  readonly #options: OwnMessagesOptions;
  #messages: OwnMessage[] = [];
  /** Round of the latest polka that the log contains. */
  #polkaRound = -1;
  #lastSignature: Promise<unknown> = Promise.resolve();

  constructor(options: OwnMessagesOptions) {
    this.#options = options;
  }

  /** As logged. */
  get all(): readonly OwnMessage[] {
    return this.#messages;
  }

  /** Resolves when the latest signature is on disk. The signer repeats only what it signed last, so the next message waits for that. */
  get lastSignature(): Promise<unknown> {
    return this.#lastSignature;
  }

  /** Begins a height, with the messages that the log held of it. */
  begin(messages: readonly OwnMessage[] = []): void {
    this.#messages = [...messages];
    this.#polkaRound = -1;
  }

  /** The log holds the polka of this round; -1 for none. */
  markPolka(round: number): void {
    this.#polkaRound = round;
  }

  /** Resolves when the message is on disk. */
  async append(message: UnsignedMessage, timestamp: string, context: MessageContext): Promise<void> {
    const { registerId, machine, findDocket } = context;
    const { locked, valid } = machine;
    const polka = this.#newPolka(machine);
    const header =
      message.kind === 'proposal'
        ? findDocket(message.value)?.header
        : (lockedHeader(message, context) ?? (polka && valid && findDocket(valid.value)?.header));
    const value = {
      registerId,
      message,
      timestamp,
      locked,
      valid,
      ...(header === undefined ? {} : { header }),
      ...(polka === undefined ? {} : { polka }),
    };
    this.#messages.push(value);
    await this.#options.append({ kind: 'own', value });
  }

  /** Logs the signature of a message. */
  addSignature(message: UnsignedMessage, signature: string): void {
    const index = this.#messages.findIndex((each) => each.message === message);
    const unsigned = this.#messages[index];
    if (unsigned === undefined) return;
    this.#messages[index] = { ...unsigned, signature };
    const { header: _header, polka: _polka, ...value } = { ...unsigned, signature };
    this.#lastSignature = this.#options.append({ kind: 'own', value });
    this.#lastSignature.catch((error: unknown) => this.#options.onFailed(error));
  }

  /** Withdraws a message that was not signed, so that it is not repeated after a restart. Later signatures wait for that. */
  withdraw(message: UnsignedMessage): void {
    const withdrawn = this.#messages.find((each) => each.message === message);
    if (withdrawn === undefined) return;
    this.#messages = this.#messages.filter((each) => each !== withdrawn);
    const { header: _header, polka: _polka, ...value } = { ...withdrawn, isWithdrawn: true };
    this.#lastSignature = this.#options.append({ kind: 'own', value });
    this.#lastSignature.catch((error: unknown) => this.#options.onFailed(error));
  }

  /** The prevotes behind a valid value that are not logged yet; own prevotes already are. */
  #newPolka({ valid, rounds }: MessageContext['machine']): OwnMessage['polka'] {
    const round = valid && rounds.get(valid.round);
    if (valid === undefined || round === undefined || valid.round <= this.#polkaRound) return undefined;
    this.#polkaRound = valid.round;
    const isOther = (vote: { readonly validatorId: string }) => vote.validatorId !== this.#options.self;
    const others = votesFor(round, 'prevote', valid.value).filter(isOther);
    if (others.length === 0) return undefined;
    return others.map(({ validatorId, timestamp, signature }) => ({ validatorId, timestamp, signature }));
  }
}

/** After a restart, a lock on another member's docket is useless without the docket. */
function lockedHeader(
  message: Exclude<UnsignedMessage, { kind: 'proposal' }>,
  { findDocket, walletAddress }: MessageContext,
): Docket['header'] | undefined {
  if (message.kind !== 'precommit' || message.value === undefined) return undefined;
  const header = findDocket(message.value)?.header;
  return header?.validatorAddress === walletAddress ? undefined : header;
}
