import { z } from 'zod';
import { encodeHex } from '#core/encoding/hex.ts';
import { isJsonObject, type JsonObject, scanJson, toValue } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import { parseVerifierKey } from '#core/ledger/checkpoint.ts';
import type { WireProofStep } from '#core/ledger/proof-path.ts';
import { parseRecord } from '#core/ledger/record.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { createRpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import {
  type GetPayloadsResponse,
  type Position,
  type ProofNode,
  type ProveTransactionResponse,
  type Publication,
  type Step,
  WorkflowLedgerService,
  type WorkflowRegister,
} from '#protos/gen/chancery/register/v1/register_pb.js';
import { refusal } from '../errors.ts';
import type {
  Ledger,
  LedgerPosition,
  LedgerRegister,
  PlacedRecord,
  SealedProof,
  SealedPublication,
} from './ledger.ts';
import type { PeerOptions } from './peer.ts';

/** Definitions may have 512 KiB each. */
const publicationsAtOnce = 5;
const registersAtOnce = 500;
const stepsAtOnce = 500;

const payloadsAtOnce = 64;

const refusedSchema = z.object({ code: z.string(), error: z.string().default('') });
const payloadSchema = z.object({ definition: z.custom<JsonObject>(isJsonObject) });

/** The ledgers of registers over gRPC; it connects on the first call. */
export function connectLedger(address: Endpoint, options: PeerOptions): Ledger & { close(): void } {
  const expect = serviceSpiffeId(options.workload.trustDomain, 'service-register');
  const client = createRpcClient(WorkflowLedgerService, { ...options, address, expect });
  return {
    listRegisters: async () => {
      const found: LedgerRegister[] = [];
      for (;;) {
        const page = { after: found.at(-1)?.registerId ?? '', limit: registersAtOnce };
        const { registers, complete } = await client.listRegisters(page).catch(unavailable);
        found.push(...registers.map(registerOf));
        if (complete || registers.length === 0) return found;
      }
    },
    findRegister: async (registerId) => {
      try {
        return registerOf(await client.getRegister({ registerId }));
      } catch (error) {
        if (isAppError(error, 'not_found')) return undefined;
        return unavailable(error);
      }
    },
    listPublications: async (registerId, after) => {
      const request = {
        registerId,
        limit: publicationsAtOnce,
        ...(after !== undefined && { after: { docket: BigInt(after.docket), index: after.index } }),
      };
      const { publications, next, complete } = await client.listPublications(request).catch(unavailable);
      return {
        publications: publications.map(publicationOf),
        next: next === undefined ? undefined : positionOf(next),
        complete,
      };
    },
    readSteps: async (registerId, { docket, index }) => {
      const from = { docket: BigInt(docket), index };
      const { steps, next, height } = await client
        .readSteps({ registerId, from, limit: stepsAtOnce })
        .catch(unavailable);
      return {
        records: steps.flatMap((step) => placedOf(step) ?? []),
        next: next === undefined ? { docket, index } : positionOf(next),
        height: Number(height),
      };
    },
    getPayloads: async (registerId, txIds) => {
      const payloads = new Map<string, Uint8Array>();
      for (let left = [...txIds]; left.length > 0; ) {
        const transactionIds = left.slice(0, payloadsAtOnce);
        const page = await client.getPayloads({ registerId, transactionIds }).catch(unavailable);
        for (const { transactionId, payload } of page.payloads) payloads.set(transactionId, payload);
        left = left.slice(answeredOf(page, transactionIds));
      }
      return payloads;
    },
    prove: async (registerId, transactionId) => {
      const answer = await client.proveTransaction({ registerId, transactionId }).catch(unavailable);
      return proofOf(registerId, answer);
    },
    submit: async (registerId, transaction) => {
      const answer = await client.submitTransaction({ registerId, transaction }).catch(unavailable);
      const { status, retryAfterSeconds } = answer;
      const { code = '', error = '' } = refusedSchema.safeParse(findBody(answer.body)).data ?? {};
      return { status, retryAfterSeconds, code: status === 200 ? '' : code, message: error };
    },
    findParticipantKeys: async (registerId, addresses) => {
      if (addresses.length === 0) return [];
      const request = { registerId, addresses: [...addresses] };
      const { keys } = await client.findParticipantKeys(request).catch(unavailable);
      return keys.map(({ address, status, algorithm, publicKey }) => ({
        address,
        status,
        algorithm,
        publicKey,
      }));
    },
    close: () => client.close(),
  };
}

function registerOf(register: WorkflowRegister): LedgerRegister {
  const { registerId, height, devMode, maxTransactionBytes, validatorsLackingPins } = register;
  return {
    registerId,
    height: Number(height),
    devMode,
    maxTransactionBytes: Number(maxTransactionBytes),
    validatorsLackingPins,
  };
}

/** How many of the requested payloads a page answers: all of them, or those up to the last one that it holds. */
function answeredOf({ payloads, complete }: GetPayloadsResponse, requested: readonly string[]): number {
  const last = payloads.at(-1);
  return complete || last === undefined ? requested.length : requested.indexOf(last.transactionId) + 1;
}

function findBody(bytes: Uint8Array): unknown {
  try {
    return toValue(scanJson(bytes));
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

function positionOf({ docket, index }: Position): LedgerPosition {
  return { docket: Number(docket), index };
}

/** A step; undefined for a publication, whose payload is in the answer. */
function placedOf({ position, record, sealedAt, publicationPayload }: Step): PlacedRecord | undefined {
  if (position === undefined || publicationPayload.length > 0) return undefined;
  return { position: positionOf(position), record: parseRecord(record), sealedAt };
}

/** @throws AppError unavailable REGISTER_UNAVAILABLE for an answer that is incomplete */
function proofOf(registerId: string, answer: ProveTransactionResponse): SealedProof {
  const { transaction, docket, inclusion, log, checkpoint, checkpointKey } = answer;
  if (transaction === undefined || docket === undefined) throw refusal('REGISTER_UNAVAILABLE');
  const { docketNumber, hash, merkleRoot, timestamp, validatorSetHash } = docket;
  return {
    record: transaction.record,
    payload: transaction.payload,
    docket: {
      registerId,
      docketNumber: Number(docketNumber),
      hash,
      merkleRoot,
      timestamp,
      validatorSetHash,
    },
    inclusion: inclusion.map(proofStepOf),
    log: log.map(proofStepOf),
    checkpoint,
    checkpointKey: parseVerifierKey(checkpointKey),
  };
}

function proofStepOf({ hash, left }: ProofNode): WireProofStep {
  return { hash: encodeHex(hash), position: left ? 'Left' : 'Right' };
}

function publicationOf({ payload, position, ...one }: Publication): SealedPublication {
  return {
    publicationTxId: one.publicationTxId,
    blueprintId: one.blueprintId,
    execDefHash: one.execDefHash,
    structuralHash: one.structuralHash,
    publishedBy: one.publishedBy,
    sealedAt: one.sealedAt,
    ordinal: one.ordinal,
    position: position === undefined ? { docket: 0, index: 0 } : positionOf(position),
    definition: payloadSchema.parse(toValue(scanJson(payload))).definition,
  };
}

/** An outage of the register service is not a refusal of the caller. */
function unavailable(cause: unknown): never {
  if (isAppError(cause, 'unavailable') || isAppError(cause, 'timeout'))
    throw refusal('REGISTER_UNAVAILABLE', { cause, retryAfterSeconds: 1 });
  throw cause;
}
