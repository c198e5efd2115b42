import { type SignerAddress, signerAddress } from '#core/crypto/address.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { scanJson } from '#core/encoding/json.ts';
import { equalBytes, fromUtf8 } from '#core/encoding/text.ts';
import { isAppError } from '#core/errors/errors.ts';
import { parseRecord } from '#core/ledger/record.ts';
import type { VerifyItem } from '#kit/crypto/verify-pool.ts';
import type { LookupAnswer } from '../../chain/keys/lookup.ts';
import { judgeWorkflow } from '../../chain/pool/step.ts';
import { hasExclusiveSuccessor, type PooledTransaction } from '../../chain/pool/transaction.ts';
import type { Ledger } from '../../chain/sealing/ports.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { PinnedWorkflow } from '../../chain/workflows/pinned-workflows.ts';
import { resolveStep } from '../../chain/workflows/resolve.ts';
import { failure } from '../../errors.ts';
import { loadPinned, type Question, questionOf } from '../lookup/question.ts';
import type { SealedLookup } from '../lookup/sealed-lookup.ts';
import { buildCandidate, type Candidate, judgeSignatures, judgeTimes, signatureChecks } from './judge.ts';
import { type Submission, submissionOf } from './submission.ts';

/** A transaction as another validator sends it. */
export interface PeerTransaction {
  readonly record: Uint8Array;
  readonly payload: Uint8Array;
}

export interface PeerVerificationOptions {
  readonly ledger: Pick<Ledger, 'findRegister'>;
  readonly lookup: Pick<SealedLookup, 'certain' | 'ask'>;
  verify(items: readonly VerifyItem[]): Promise<readonly boolean[]>;
}

/** The docket that the transactions belong to. */
interface DocketContext {
  /** The docket's own timestamp, which a proposal is judged by so that every member reaches the same verdict. */
  readonly atMs: number;
  /** The same in ticks of 100 ns. */
  readonly nowTicks: bigint;
  /** The docket's known transactions, by id. */
  readonly known: Map<string, Pick<PooledTransaction, 'type' | 'step'>>;
  /** A quorum has sealed the docket, so its state and chain were already judged. */
  readonly certified: boolean;
}

interface ParsedTransaction {
  readonly submission: Submission;
  readonly candidate: Candidate;
}

/**
 * Parses a transaction from another validator into a submission, which then passes the same checks as a client's.
 * @throws AppError invalid VAL_STRUCT_012 when the record is malformed or the payload is ambiguous JSON, or with the other
 * findings
 */
export function parsePeerTransaction(
  { record, payload }: PeerTransaction,
  addressOf: SignerAddress = signerAddress,
): Submission {
  const parsed = parseRecord(record);
  const text = fromUtf8(payload);
  if (text === undefined) throw failure('VAL_STRUCT_012', { message: 'The payload is not UTF-8' });
  // wrapped in an array so that the nesting depth equals that of a client's submission
  const list = scanJson(`[${text}]`);
  const [only, ...others] = list.kind === 'array' ? list.items : [];
  if (only === undefined || others.length > 0) {
    throw failure('VAL_STRUCT_012', { message: 'The payload is not one JSON value' });
  }
  return submissionOf(parsed, only, addressOf);
}

/**
 * Verifies the transactions of another member's docket with the admission stages that need more than docket and state:
 * shape, hashes, signatures, chain. The pool is not changed. 'invalid' when one of them may not be in that docket.
 * @throws AppError unavailable when the register service cannot answer, or has stored dockets that are not known here yet
 */
export async function verifyPeerTransactions(
  options: PeerVerificationOptions,
  register: RegisterChain,
  received: readonly PeerTransaction[],
  context: DocketContext,
): Promise<readonly PooledTransaction[] | 'invalid'> {
  try {
    const examined = received.map((each) => read(register, each, context));
    for (const { candidate } of examined) context.known.set(candidate.txId, candidate);
    const checks = await options.verify(examined.flatMap(({ submission }) => signatureChecks(submission)));
    if (judgeSignatures(checks).length > 0) return 'invalid';
    return await link(options, register, examined, context);
  } catch (error) {
    if (isRefusal(error)) return 'invalid';
    throw error;
  }
}

/** Whether the error is the fault of the transaction itself. */
export function isRefusal(error: unknown): boolean {
  const kinds = ['invalid', 'unprocessable', 'forbidden', 'conflict', 'not_found'] as const;
  return kinds.some((kind) => isAppError(error, kind));
}

function read(register: RegisterChain, received: PeerTransaction, context: DocketContext): ParsedTransaction {
  const submission = parsePeerTransaction(received);
  const candidate = buildCandidate(submission, register.state.rules);
  const isSame =
    equalBytes(candidate.record, received.record) && equalBytes(candidate.payload, received.payload);
  const isHere = candidate.registerId === register.id && (context.certified || candidate.type !== 'Genesis');
  if (!isSame || !isHere)
    throw failure('VAL_STRUCT_012', {
      message: 'The record is not canonical, or belongs to another register',
    });
  const late = context.certified ? [] : judgeTimes(submission, context.atMs);
  if (late.length > 0) throw failure('VAL_TIME_002');
  return { submission, candidate };
}

async function link(
  options: PeerVerificationOptions,
  register: RegisterChain,
  examined: readonly ParsedTransaction[],
  context: DocketContext,
): Promise<readonly PooledTransaction[] | 'invalid'> {
  const questions = examined.map(({ candidate }) =>
    questionOf(register, candidate, (previous) => typeHere(register, previous, context)),
  );
  const answers = await answersTo(options, questions);
  const transactions: PooledTransaction[] = [];
  for (const [index, each] of examined.entries()) {
    const answer = answers[index];
    if (answer === undefined) throw failure('VAL_CHAIN_TRANSIENT');
    const question = questions[index];
    const pinned = context.certified || !question ? undefined : await loadPinned(question, answer);
    assertPinStored(register, each, pinned, context);
    const transaction = toPooled(register, each, { answer, pinned }, context);
    if (transaction === undefined) {
      await assertUpToDate(options, register, context);
      return 'invalid';
    }
    transactions.push(transaction);
  }
  return transactions;
}

/** The answers in the order of the questions; the register service is asked about what is not certainly new. */
async function answersTo(
  { lookup }: PeerVerificationOptions,
  questions: readonly Question[],
): Promise<readonly (LookupAnswer | undefined)[]> {
  const known = questions.map((question) => lookup.certain(question));
  const uncertain = questions.filter((_, index) => known[index] === undefined);
  const asked = uncertain.length === 0 ? [] : await lookup.ask(uncertain);
  const answers = new Map(uncertain.map((question, index) => [question, asked[index]]));
  return questions.map((question, index) => known[index] ?? answers.get(question));
}

/** When other members have stored a docket of this height, its transactions do not count against a proposal of this height. */
async function assertUpToDate(
  { ledger }: PeerVerificationOptions,
  { id, state }: RegisterChain,
  { certified }: DocketContext,
) {
  if (certified) return;
  const stored = (await ledger.findRegister(id))?.height ?? 0;
  if (stored > state.height) {
    throw failure('VAL_CHAIN_TRANSIENT', {
      message: 'The register service has dockets that this validator has not decided yet; retry',
    });
  }
}

/** Resolves the predecessor of a transaction; undefined when the transaction may not be sealed here. */
function toPooled(
  register: RegisterChain,
  { candidate }: ParsedTransaction,
  { answer, pinned }: { readonly answer: LookupAnswer; readonly pinned: PinnedWorkflow | undefined },
  context: DocketContext,
): PooledTransaction | undefined {
  const { certified, atMs } = context;
  const sealedAs = answer.sealedRecordHash;
  if (sealedAs !== '' && (!certified || sealedAs !== encodeHex(candidate.leaf))) return undefined;
  const type = previousType(register, candidate, answer, context);
  if (candidate.previousTransactionId !== undefined && type === undefined) return undefined;
  const exclusivePredecessor = type !== undefined && hasExclusiveSuccessor(type);
  const replayKey = exclusivePredecessor ? undefined : candidate.replayKey;
  const step = candidate.step && (certified ? candidate.step : resolveStep(candidate.step, pinned, answer));
  const transaction = { ...candidate, exclusivePredecessor, replayKey, addedAtMs: atMs, step };
  if (!certified && !isInWorkflow(register, transaction, answer, context)) return undefined;
  const isSecond = isFork(register, transaction, answer) || isRepeated(register, transaction, answer);
  return isSecond && !certified ? undefined : transaction;
}

/**
 * A publication that is decided and not stored yet may be known to other members already: the docket is not judged now,
 * instead of being called invalid.
 */
function assertPinStored(
  { pool }: RegisterChain,
  { candidate: { step } }: ParsedTransaction,
  pinned: PinnedWorkflow | undefined,
  { certified }: DocketContext,
): void {
  if (certified || step === undefined || pinned !== undefined) return;
  if (pool.findDecided(step.pin) !== undefined) throw failure('VAL_CHAIN_TRANSIENT');
}

/** Whether a step follows from its definition and its predecessor, and nothing else follows a step. */
function isInWorkflow(
  { pool }: RegisterChain,
  transaction: PooledTransaction,
  { previousKnown, previousType: type, previousRouting }: LookupAnswer,
  { known, nowTicks }: DocketContext,
): boolean {
  const txId = transaction.previousTransactionId;
  const sealed = txId && previousKnown ? { txId, type, routing: previousRouting || undefined } : undefined;
  const find = (id: string) => known.get(id) ?? pool.findDecided(id);
  return judgeWorkflow(transaction, { nowTicks, find, sealed }).length === 0;
}

/** Type of the predecessor: in the same docket, decided, or stored. */
function previousType(
  register: RegisterChain,
  { previousTransactionId: previous }: Candidate,
  answer: LookupAnswer,
  context: DocketContext,
): string | undefined {
  if (previous === undefined) return undefined;
  return typeHere(register, previous, context) ?? (answer.previousKnown ? answer.previousType : undefined);
}

/** Type of a predecessor in the same docket, or decided and still in the pool. */
function typeHere({ pool }: RegisterChain, previous: string, { known }: DocketContext): string | undefined {
  return (known.get(previous) ?? pool.findDecided(previous))?.type;
}

/** Whether a decided or stored transaction already succeeds the predecessor; a merely waiting one is superseded. */
function isFork({ pool }: RegisterChain, transaction: PooledTransaction, answer: LookupAnswer): boolean {
  const { txId, previousTransactionId: previous, exclusivePredecessor } = transaction;
  if (previous === undefined || !exclusivePredecessor) return false;
  const successor = pool.findSuccessor(previous);
  const isDecided = successor !== undefined && pool.find(successor)?.stage !== 'waiting';
  const taken = (isDecided ? successor : undefined) ?? (answer.previousSuccessor || undefined);
  return taken !== undefined && taken !== txId;
}

/** Whether a decided or stored transaction has the same replay key; a merely waiting one is superseded. */
function isRepeated({ pool }: RegisterChain, transaction: PooledTransaction, answer: LookupAnswer): boolean {
  const { txId, replayKey } = transaction;
  if (replayKey === undefined) return false;
  const holder = pool.findReplay(replayKey);
  const isDecided = holder !== undefined && pool.find(holder)?.stage !== 'waiting';
  const sealedAs = answer.sealedReplay || (isDecided ? holder : undefined);
  return sealedAs !== undefined && sealedAs !== txId;
}
