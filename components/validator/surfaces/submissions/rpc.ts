import { fromUtf8, utf8 } from '#core/encoding/text.ts';
import { findRegisterId } from '#core/ledger/register-id.ts';
import type { RpcContext, RpcHandlers, RpcPeer } from '#kit/rpc/rpc.ts';
import { SealOutcome, type SubmissionService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import type { Tombstone } from '../../chain/pool/tombstones.ts';
import type { PooledTransaction } from '../../chain/pool/transaction.ts';
import type { Registers } from '../../chain/registers/registers.ts';
import type { RegisterChain } from '../../chain/sealing/register-chain.ts';
import type { SealResult } from '../../chain/sealing/status.ts';
import { failure } from '../../errors.ts';
import type { Origin } from '../../intake/admission/admission.ts';
import type { Answer } from '../../intake/admission/answer.ts';
import { answerSubmission, type SubmissionDeps } from './answer-submission.ts';
import { answerBatch, assertSize } from './batch.ts';

interface SubmissionRpcOptions extends SubmissionDeps {
  readonly registers: Pick<Registers, 'get' | 'find'>;
}

const registerService = 'service-register';
const maxListed = 1_000;
const maxSealMs = 30_000;
const defaultSealMs = 30_000;

const sealOutcomes: Readonly<Record<SealResult['outcome'], SealOutcome>> = {
  sealed: SealOutcome.SEALED,
  'nothing-pending': SealOutcome.NO_PENDING_TRANSACTIONS,
  'not-running': SealOutcome.QUORUM_UNAVAILABLE,
  timeout: SealOutcome.TIMEOUT,
};

/** The RPCs of the register service: submit, list pending transactions, seal now. Validators may only submit. */
export function submissionHandlers(
  options: SubmissionRpcOptions,
): RpcHandlers<typeof SubmissionService.method> {
  const { registers } = options;
  return {
    async submit({ submissionJson, forwarded }, { peer }) {
      const text = textOf(submissionJson);
      return wireAnswer(await answerSubmission(options, text, originOf(peer, forwarded)));
    },
    async *submitBatches(batches, { peer }) {
      for await (const { submissionsJson, forwarded } of batches) {
        assertSize(submissionsJson.length);
        const texts = {
          count: submissionsJson.length,
          at: (index: number) => textOf(submissionsJson[index]),
        };
        const answers = await answerBatch(options, texts, originOf(peer, forwarded));
        yield { answers: answers.map(wireAnswer) };
      }
    },
    async findTransactions({ registerId, transactionIds }, context) {
      assertRegisterService(context);
      const register = registers.get(registerId);
      if (register === undefined) return { transactions: [] };
      return {
        transactions: transactionIds
          .slice(0, maxListed)
          .flatMap((txId) => findUnsealed(register, txId) ?? []),
      };
    },
    async listPending({ registerId, limit }, context) {
      assertRegisterService(context);
      const register = registers.get(registerId);
      if (register === undefined) return { transactions: [], total: 0 };
      const transactions: ReturnType<typeof pendingTransaction>[] = [];
      for (const transaction of register.pool.waiting()) {
        if (transactions.length >= Math.min(limit || maxListed, maxListed)) break;
        transactions.push(pendingTransaction(transaction));
      }
      return { transactions, total: register.pool.size };
    },
    async seal({ registerId, maxTransactions, timeoutMs }, context) {
      assertRegisterService(context);
      const register = await registerOf(registers, registerId);
      const waitMs = Math.min(timeoutMs || defaultSealMs, maxSealMs);
      const result = await register.seal(maxTransactions || undefined, waitMs);
      return { outcome: sealOutcomes[result.outcome], docketNumber: BigInt(result.docketNumber) };
    },
  };
}

/** Invalid UTF-8 becomes an empty text, which is refused as a submission. */
function textOf(bytes: Uint8Array | undefined): string {
  return (bytes && fromUtf8(bytes)) ?? '';
}

function originOf({ clientId }: RpcPeer, isForwarded: boolean): Origin {
  return { isRegisterService: clientId === registerService, isForwarded };
}

function wireAnswer({ status, body, retryAfterSeconds }: Answer) {
  return { status, bodyJson: utf8(JSON.stringify(body)), retryAfterSeconds };
}

/** Other validators may forward submissions; pending transactions and sealing are for the register service only. */
function assertRegisterService({ peer }: RpcContext): void {
  if (peer.clientId === registerService) return;
  throw failure('FORBIDDEN', { message: 'Only the register service may call this method' });
}

async function registerOf(registers: Pick<Registers, 'find'>, text: string): Promise<RegisterChain> {
  const registerId = findRegisterId(text);
  const register = registerId && (await registers.find(registerId));
  if (!register) throw failure('REGISTER_NOT_FOUND');
  return register;
}

function findUnsealed(register: RegisterChain, txId: string) {
  const known = register.pool.find(txId);
  if (known !== undefined && known.stage !== 'stored') return pendingTransaction(known.transaction);
  const tombstone = register.tombstones.find(txId);
  return tombstone && rejectedTransaction(tombstone);
}

function pendingTransaction(transaction: PooledTransaction) {
  const { txId: transactionId, record, addedAtMs } = transaction;
  return {
    transactionId,
    status: 'pending',
    record,
    rejectionCode: '',
    rejectionMessage: '',
    atMs: BigInt(addedAtMs),
  };
}

function rejectedTransaction({ txId: transactionId, status, code, message, atMs }: Tombstone) {
  return {
    transactionId,
    status,
    record: new Uint8Array(),
    rejectionCode: code,
    rejectionMessage: message,
    atMs: BigInt(atMs),
  };
}
