import { BLUEPRINT_PINS } from '#core/blueprint/pins.ts';
import { isWalletAddress } from '#core/crypto/address.ts';
import { findMember, scanJson } from '#core/encoding/json.ts';
import { AppError } from '#core/errors/errors.ts';
import type { Caller } from '#core/identity/claims.ts';
import { parsePolicy } from '#core/ledger/policy.ts';
import { findRegisterId, findTxId } from '#core/ledger/register-id.ts';
import type { Reader } from '#kit/db/db.ts';
import type { RpcContext, RpcHandlers, RpcServer } from '#kit/rpc/rpc.ts';
import { WorkflowLedgerService } from '#protos/gen/chancery/register/v1/register_pb.js';
import type { Validators } from '../../clients/validators.ts';
import type { RegisterSchema } from '../../database/schema.ts';
import { wholeOf } from '../../ledger/dockets/wire.ts';
import type { Location } from '../../ledger/sealed/rows/store.ts';
import { keyed } from '../../ledger/transactions/read.ts';
import { sendSubmission } from '../../ledger/transactions/submit.ts';
import { findKeys } from '../../queries/participants/store.ts';
import type { FindMembers } from '../../registers/directory/ask.ts';
import { membersWithout } from '../../registers/directory/store.ts';
import { getRegister, getWritableRegister } from '../../registers/state/access.ts';
import { type Register, registersAfter } from '../../registers/state/store.ts';
import { findPayload, type PublishedVersion, versionsAfter } from '../publications/store.ts';
import { type ProveDeps, proveSealed } from './prove.ts';
import { readPayloads } from './read-payloads.ts';
import { readSteps } from './read-steps.ts';

interface WorkflowDeps extends ProveDeps {
  readonly validators: Validators;
  readonly findMembers: FindMembers;
}

type Handlers = RpcHandlers<(typeof WorkflowLedgerService)['method']>;

const CALLER = 'service-blueprint';
const beginning: Location = { docketNumber: 0, position: 0 };
const beforeAll: Location = { docketNumber: -1, position: 0 };

const invalid = (message: string) => new AppError('invalid', 'INVALID_REQUEST', message);

/** 0 stands for the default. */
function limitOf(given: number, bounds: { readonly usual: number; readonly most: number }): number {
  if (given > bounds.most) throw invalid(`limit is at most ${bounds.most}.`);
  return given === 0 ? bounds.usual : given;
}

function atMost<T>(items: readonly T[], most: number): readonly T[] {
  if (items.length > most) throw invalid(`A request may have ${most} items at most.`);
  return items;
}

/** Allows the blueprint service, whose token has the scope `registers:write`. */
function callerOf(context: RpcContext): Caller {
  const { caller } = context;
  if (caller?.kind === 'service' && caller.scopes.includes('registers:write')) return caller;
  throw new AppError('forbidden', 'FORBIDDEN', 'Workflows need the scope registers:write.');
}

function locationOf(
  position: { readonly docket: bigint; readonly index: number } | undefined,
  none: Location,
) {
  return position === undefined ? none : { docketNumber: wholeOf(position.docket), position: position.index };
}

function positionOf({ docketNumber, position }: Location) {
  return { docket: BigInt(Math.max(docketNumber, 0)), index: position };
}

async function presentRegisters(db: Reader<RegisterSchema>, registers: readonly Register[]) {
  const lacking = await membersWithout(
    db,
    registers.map(({ registerNo }) => registerNo),
    BLUEPRINT_PINS,
  );
  return registers.map((register) => ({
    registerId: register.registerId,
    name: register.title,
    status: register.status,
    height: BigInt(register.height),
    devMode: register.devMode,
    tenantId: register.organizationId ?? '',
    maxTransactionBytes: BigInt(parsePolicy(JSON.parse(register.policyText)).consensus.maxTransactionBytes),
    validatorsLackingPins: [...(lacking.get(register.registerNo) ?? [])],
    sandbox: register.metadata['sandbox'] === 'true',
  }));
}

/** The register that a submission names must be the one that was checked. */
function assertNames(submission: Uint8Array, registerId: string): void {
  const node = scanJson(submission);
  const named = ['RegisterId', 'registerId'].flatMap((name) => findMember(node, name) ?? []);
  const isSame = named.every((one) => one.kind === 'string' && one.value === registerId);
  if (named.length === 0 || !isSame)
    throw new AppError('invalid', 'VAL_STRUCT_003', 'RegisterId is not the register of the request.');
}

/** A page ends before the payloads exceed this; the first publication is always in it. */
const mostPublicationBytes = 8 * 1024 * 1024;

async function publicationsOf(
  db: Reader<RegisterSchema>,
  registerNo: number,
  versions: readonly PublishedVersion[],
) {
  const publications = [];
  let bytes = 0;
  for (const version of versions) {
    const payload = (await findPayload(db, registerNo, version)) ?? new Uint8Array();
    bytes += payload.length;
    if (publications.length > 0 && bytes > mostPublicationBytes) break;
    publications.push({
      publicationTxId: version.txId,
      blueprintId: version.blueprintId,
      execDefHash: version.execDefHash,
      structuralHash: version.structuralHash,
      publishedBy: version.publishedBy,
      sealedAt: version.publishedAt,
      position: positionOf(version),
      ordinal: version.ordinal,
      payload,
    });
  }
  return publications;
}

function registerHandlers({ db }: WorkflowDeps): Pick<Handlers, 'listRegisters' | 'getRegister'> {
  return {
    async listRegisters({ after, limit: given }, context) {
      callerOf(context);
      const limit = limitOf(given, { usual: 100, most: 500 });
      const from = after === '' ? '' : findRegisterId(after);
      if (from === undefined) throw invalid('after is not the id of a register.');
      const found = await registersAfter(db, from, limit + 1);
      const registers = await presentRegisters(db, found.slice(0, limit));
      return { registers, complete: found.length <= limit };
    },
    async getRegister({ registerId }, context) {
      callerOf(context);
      const [register = {}] = await presentRegisters(db, [await getRegister(db, registerId)]);
      return register;
    },
  };
}

export function workflowHandlers(deps: WorkflowDeps): Handlers {
  const { db } = deps;
  return {
    ...registerHandlers(deps),
    async readSteps({ registerId, from, limit: given }, context) {
      callerOf(context);
      const limit = limitOf(given, { usual: 500, most: 1_000 });
      const register = await getRegister(db, registerId);
      const page = await readSteps(db, register, locationOf(from, beginning), limit);
      return {
        steps: page.steps.map(({ location, ...step }) => ({ ...step, position: positionOf(location) })),
        next: positionOf(page.next),
        height: BigInt(register.height),
      };
    },
    async getPayloads({ registerId, transactionIds }, context) {
      callerOf(context);
      const txIds = atMost(transactionIds, 64).flatMap((id) => findTxId(id) ?? []);
      const register = await getRegister(db, registerId);
      const { payloads, complete } = await readPayloads(db, keyed(deps, register), txIds);
      return { payloads: [...payloads], complete };
    },
    async listPublications({ registerId, blueprintId, after, limit: given }, context) {
      callerOf(context);
      const limit = limitOf(given, { usual: 50, most: 200 });
      const { registerNo } = await getRegister(db, registerId);
      if (blueprintId.includes('\u0000')) throw invalid('blueprintId holds NUL.');
      const of = { registerNo, blueprintId: blueprintId === '' ? undefined : blueprintId };
      const start = locationOf(after, beforeAll);
      const versions = await versionsAfter(db, of, start, limit + 1);
      const publications = await publicationsOf(db, registerNo, versions.slice(0, limit));
      const next = publications.at(-1)?.position ?? (after && positionOf(start));
      return {
        publications,
        ...(next !== undefined && { next }),
        complete: publications.length === versions.length,
      };
    },
    async submitTransaction({ registerId, transaction }, context) {
      const register = await getWritableRegister(db, callerOf(context), registerId);
      assertNames(transaction, register.registerId);
      const answer = await sendSubmission(deps, register, transaction);
      return {
        status: answer.status,
        body: Buffer.from(JSON.stringify(answer.body)),
        retryAfterSeconds: answer.retryAfterSeconds,
      };
    },
    async findParticipantKeys({ registerId, addresses }, context) {
      callerOf(context);
      const { registerNo } = await getRegister(db, registerId);
      const known = atMost(addresses, 256).filter(isWalletAddress);
      const keys = known.length === 0 ? [] : await findKeys(db, registerNo, known);
      return {
        keys: keys.map(({ walletAddress, participantId, status, encryptionKey }) => ({
          address: walletAddress,
          participantId,
          status,
          algorithm: encryptionKey?.algorithm ?? '',
          publicKey: encryptionKey?.publicKey ?? '',
        })),
      };
    },
    async proveTransaction({ registerId, transactionId }, context) {
      callerOf(context);
      return proveSealed(deps, await getRegister(db, registerId), transactionId);
    },
  };
}

/** Serves the blueprint service. */
export function addWorkflowLedgerService(server: RpcServer, deps: WorkflowDeps): void {
  server.add(WorkflowLedgerService, workflowHandlers(deps), {
    allow: ({ clientId }) => clientId === CALLER,
    requireToken: true,
  });
}
