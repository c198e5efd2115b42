import type { Verifier } from '#core/crypto/verify.ts';
import { encodeHex } from '#core/encoding/hex.ts';
import { AppError, type Violation } from '#core/errors/errors.ts';
import { isAttestation } from '#core/ledger/attestation.ts';
import { activeMembers, type LedgerRules } from '#core/ledger/governance/rules.ts';
import { rulesJson } from '#core/ledger/governance/rules-json.ts';
import { findRegisterId, findTxId } from '#core/ledger/register-id.ts';
import type { Clock } from '#kit/clock/clock.ts';
import type { Database } from '#kit/db/db.ts';
import type { RpcContext, RpcHandlers, RpcServer } from '#kit/rpc/rpc.ts';
import { LedgerService, WriteOutcome } from '#protos/gen/chancery/register/v1/register_pb.js';
import type { RegisterSchema } from '../../database/schema.ts';
import { refusal } from '../../errors.ts';
import { registersOfMember } from '../../registers/directory/store.ts';
import { getRegister } from '../../registers/state/access.ts';
import { loadChain, membersAt, type StoredChain, subscribedAmong } from '../../registers/state/store.ts';
import { findDocket, insertAttestation } from '../dockets/store.ts';
import { bundleOf, requireMember, voteOf, wholeOf } from '../dockets/wire.ts';
import { createLookup } from '../lookup/store.ts';
import type { Segments } from '../segments/segments.ts';
import { frontierOf, rulesOfChain } from '../writing/chain.ts';
import { violationsOf, type WriteDocket, type WriteResult } from '../writing/write.ts';
import { createReadKeys } from './read-keys.ts';

interface LedgerDeps {
  readonly database: Database<RegisterSchema>;
  readonly verifier: Verifier;
  readonly clock: Clock;
  readonly writeDocket: WriteDocket;
  readonly segments: Pick<Segments, 'of' | 'named'>;
}

/** Maximum items of one Lookup; a batch is at most one docket of transactions. */
const maxLookups = 10_000;
/** Maximum registers of one ListSubscriptions; a validator reports no more. */
const maxSubscriptions = 10_000;

const outcomes: Readonly<Record<WriteResult['outcome'], WriteOutcome>> = {
  stored: WriteOutcome.STORED,
  replayed: WriteOutcome.REPLAYED,
  divergent: WriteOutcome.DIVERGENT,
  out_of_order: WriteOutcome.OUT_OF_ORDER,
  invalid: WriteOutcome.INVALID,
};

/** A malformed key is refused: answering "not found" would be wrong. */
function replayKeyOf(text: string): string {
  if (text === '' || /^[0-9a-f]{32}$/.test(text)) return text;
  throw new AppError('invalid', 'INVALID_REQUEST', 'A replay key must have 32 hexadecimal characters.');
}

function refusalOf({ code, message, field }: Violation) {
  return { code, message, field: field ?? '' };
}

/** Allows validators whose token has the scope `dockets:write`. */
function requireWriter(context: RpcContext): void {
  const mayWrite = context.caller?.kind === 'service' && context.caller.scopes.includes('dockets:write');
  if (!mayWrite)
    throw new AppError('forbidden', 'FORBIDDEN', 'Writing dockets needs the scope dockets:write.');
}

/** `rules` are those after the last docket; undefined before docket 0. */
function presentState({ register, members, roster }: StoredChain, rules: LedgerRules | undefined) {
  return {
    found: true,
    registerId: register.registerId,
    status: register.status,
    height: BigInt(register.height),
    transactionCount: BigInt(register.transactionCount),
    headHash: register.headHash,
    headTimestamp: register.headTimestamp,
    logFrontier: frontierOf(register).serialise(),
    validators: rules === undefined ? [...members] : activeMembers(rules),
    roster: (rules?.roster ?? roster).map(({ subject, role, publicKey, algorithm }) => ({
      subject,
      role,
      publicKey,
      algorithm,
    })),
    policyJson: rules === undefined ? register.policyText : JSON.stringify(rules.policy),
    networkId: register.networkId,
    rulesJson: rules === undefined ? '' : rulesJson(rules),
  };
}

export function ledgerHandlers(deps: LedgerDeps): RpcHandlers<(typeof LedgerService)['method']> {
  const { read } = deps.database;
  const lookup = createLookup(read, deps.segments);
  return {
    async lookup({ items }) {
      if (items.length > maxLookups)
        throw new AppError('invalid', 'INVALID_REQUEST', 'A lookup may contain 10000 items at most.');
      const questions = items.map((item) => ({
        registerId: findRegisterId(item.registerId) ?? '',
        txId: findTxId(item.transactionId) ?? '',
        previousTxId: findTxId(item.previousTransactionId) ?? '',
        replayKey: replayKeyOf(item.replayKey),
        pin: findTxId(item.pin) ?? '',
      }));
      const rows = questions.length === 0 ? [] : await lookup(questions);
      return {
        answers: rows.map((row) => ({
          sealedRecordHash: row.leaf === null ? '' : encodeHex(row.leaf),
          sealedDocketNumber: BigInt(row.docketNumber ?? 0),
          previousKnown: row.previousType !== null,
          previousType: row.previousType ?? '',
          previousSuccessor: row.successor === null ? '' : encodeHex(row.successor),
          sealedReplay: row.replay === null ? '' : encodeHex(row.replay),
          previousRouting: row.previousRouting ?? '',
          pinKnown: row.isPinKnown,
        })),
      };
    },
    readKeys: createReadKeys(deps.database),
    async checkSubscription({ organizationId, registerId }) {
      if (organizationId.includes('\u0000')) throw refusal('REGISTER_NOT_FOUND');
      const register = await getRegister(read, registerId, organizationId);
      return { subscribed: register.subscribed };
    },
    async listSubscriptions({ organizationId, registerIds }) {
      if (registerIds.length > maxSubscriptions)
        throw new AppError('invalid', 'INVALID_REQUEST', 'A request may name 10000 registers at most.');
      if (organizationId.includes('\u0000')) return { registerIds: [] };
      const known = registerIds.flatMap((registerId) => findRegisterId(registerId) ?? []);
      return { registerIds: await subscribedAmong(read, organizationId, known) };
    },
    async writeDocket(request, context) {
      requireWriter(context);
      const result = await deps.writeDocket(bundleOf(request));
      return {
        outcome: outcomes[result.outcome],
        height: BigInt(result.height),
        refusals: violationsOf(result).map(refusalOf),
      };
    },
    async appendAttestation({ registerId, docketNumber, attestation }, context) {
      requireWriter(context);
      const id = findRegisterId(registerId);
      const register = id === undefined ? undefined : (await loadChain(read, id))?.register;
      if (register === undefined) throw refusal('REGISTER_NOT_FOUND');
      const number = wholeOf(docketNumber);
      const docket = await findDocket(read, register.registerNo, { docketNumber: number });
      if (docket === undefined) throw refusal('DOCKET_NOT_FOUND');
      const vote = voteOf(requireMember(attestation, 'attestation'));
      const members = await membersAt(read, register.registerNo, number);
      if (!isAttestation(vote, docket.hash, members, deps.verifier)) {
        throw new AppError('unprocessable', 'VAL_SIG_002', 'The attestation does not verify.');
      }
      await deps.database.transact((tx) =>
        insertAttestation(tx, { registerNo: register.registerNo, docketNumber: number }, vote),
      );
      return {};
    },
    async getRegisterState({ registerId }) {
      const id = findRegisterId(registerId);
      const chain = id === undefined ? undefined : await loadChain(read, id);
      if (chain === undefined) return { found: false, registerId };
      return presentState(chain, await rulesOfChain(deps, chain));
    },
    async listMemberRegisters(_request, context) {
      return { registerIds: await registersOfMember(read, context.peer.clientId) };
    },
  };
}

/** Serves the ledger to validators. A caller needs the SPIFFE id of a validator and its own service token. */
export function addLedgerService(server: RpcServer, deps: LedgerDeps): void {
  server.add(LedgerService, ledgerHandlers(deps), {
    allow: (peer) => peer.clientId.startsWith('validator-'),
    requireToken: true,
  });
}
