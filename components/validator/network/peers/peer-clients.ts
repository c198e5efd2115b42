import { z } from 'zod';
import { scanJson, toValue } from '#core/encoding/json.ts';
import { AppError, isAppError } from '#core/errors/errors.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient, type RpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import { ValidatorAdminService } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { SubmissionService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import type { ModeCommand } from '../../chain/sealing/modes.ts';
import type { Answer } from '../../intake/admission/answer.ts';
import { type HeldEvidence, parseHeldEvidence } from '../../surfaces/evidence/wire.ts';
import type { BuildRequest, BuiltDocket } from '../../surfaces/preview/build.ts';
import type { WaitingPage, WaitingWindow } from '../../surfaces/preview/waiting.ts';
import { builtOf, waitingOf } from '../../surfaces/preview/wire.ts';
import { assertReport } from '../../surfaces/reports/parse.ts';
import type { ValidatorReport } from '../../surfaces/reports/report.ts';
import { reportOf } from '../../surfaces/reports/wire.ts';
import type { Directory } from './directory.ts';

/** The calls of one validator to another. An outage is an AppError of kind unavailable or timeout. */
export interface PeerClients {
  /** Forwards a submission; the receiver does not forward it again. */
  submit(validatorId: string, submission: Uint8Array): Promise<Answer>;
  /** @param registerId empty for every register */
  report(validatorId: string, registerId: string): Promise<ValidatorReport>;
  /** The peer's evidence for a register, unverified. */
  evidence(validatorId: string, registerId: string): Promise<readonly HeldEvidence[]>;
  /** The peer's waiting transactions of a register, authorised by the caller's token. */
  listWaiting(validatorId: string, request: SubjectRequest & WaitingWindow): Promise<WaitingPage>;
  /** The docket that the peer would propose, authorised by the caller's token. */
  buildDocket(validatorId: string, request: SubjectRequest & BuildRequest): Promise<BuiltDocket>;
  /** Changes the peer's configuration in the name of a system administrator. */
  configure(
    validatorId: string,
    order: { readonly patch: Uint8Array; readonly subjectToken: string },
  ): Promise<void>;
  /** Starts, stops, pauses or resumes a register at the peer in the name of a system administrator. */
  act(validatorId: string, request: PeerModeRequest): Promise<ModeOutcome>;
}

export interface PeerModeRequest {
  readonly registerId: string;
  readonly act: ModeCommand;
  /** The system administrator's access token: no validator may stop another one by itself. */
  readonly subjectToken: string;
}

/** A request about a register, with the caller's token. */
export interface SubjectRequest {
  readonly registerId: string;
  readonly subjectToken: string;
}

export interface ModeOutcome {
  readonly status: string;
  /** False when the register had that status already. */
  readonly changed: boolean;
}

export interface PeerClientOptions {
  readonly directory: Directory;
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly token: () => Promise<string>;
  /** Called when a peer's answer is malformed. */
  onFault?(validatorId: string): void;
}

interface Connection {
  readonly endpoint: string;
  readonly submissions: RpcClient<typeof SubmissionService.method>;
  readonly admin: RpcClient<typeof ValidatorAdminService.method>;
}

/** A person waits for the combined answer, so a slower peer is reported as unreachable. */
const requestTimeoutMs = 2_000;
const submitTimeoutMs = 5_000;
/** The upper bound of a vote, with time for the answer. */
const sealTimeoutMs = 32_000;

/** One connection per validator, replaced when its endpoint changes. Each peer must prove its SPIFFE identity. */
export function connectPeerClients(options: PeerClientOptions): PeerClients & { close(): void } {
  const { directory, ...peer } = options;
  const connections = new Map<string, Connection>();

  function close(connection: Connection): void {
    connection.submissions.close();
    connection.admin.close();
  }

  async function connectionTo(validatorId: string): Promise<Connection> {
    const entry = await directory.find(validatorId);
    if (entry === undefined)
      throw new AppError('unavailable', 'VALIDATOR_UNAVAILABLE', `${validatorId} has not announced itself`);
    const open = connections.get(validatorId);
    if (open?.endpoint === entry.endpoint) return open;
    if (open !== undefined) close(open);
    const { endpoint } = entry;
    const expect = serviceSpiffeId(options.workload.trustDomain, validatorId);
    const each = { ...peer, address: endpoint, expect };
    const connection = {
      endpoint,
      submissions: createRpcClient(SubmissionService, each),
      admin: createRpcClient(ValidatorAdminService, each),
    };
    connections.set(validatorId, connection);
    return connection;
  }

  /** Turns a malformed answer into bad_gateway and reports its sender. */
  async function checked<T>(validatorId: string, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      const isNone = isAppError(error, 'bad_gateway') || error instanceof z.ZodError;
      if (isNone) options.onFault?.(validatorId);
      throw isNone ? malformedAnswer(error) : error;
    }
  }

  const quick = { timeoutMs: requestTimeoutMs };
  return {
    async submit(validatorId, submissionJson) {
      const { submissions } = await connectionTo(validatorId);
      const request = { submissionJson, forwarded: true };
      return checked(validatorId, async () =>
        answerOf(await submissions.submit(request, { timeoutMs: submitTimeoutMs })),
      );
    },
    async report(validatorId, registerId) {
      const { admin } = await connectionTo(validatorId);
      return checked(validatorId, async () =>
        assertReport(reportOf(await admin.getStatus({ registerId }, quick))),
      );
    },
    async evidence(validatorId, registerId) {
      const { admin } = await connectionTo(validatorId);
      return checked(validatorId, async () =>
        parseHeldEvidence(await admin.listEvidence({ registerId }, quick)),
      );
    },
    async act(validatorId, { registerId, act, subjectToken }) {
      const { admin } = await connectionTo(validatorId);
      return checked(validatorId, async () =>
        actedSchema.parse(await admin.act({ registerId, act }, { ...quick, subjectToken })),
      );
    },
    async listWaiting(validatorId, { subjectToken, ...request }) {
      const { admin } = await connectionTo(validatorId);
      return checked(validatorId, async () =>
        waitingOf(await admin.listWaiting(request, { ...quick, subjectToken })),
      );
    },
    async buildDocket(validatorId, { subjectToken, ...request }) {
      const { admin } = await connectionTo(validatorId);
      const timeoutMs = request.seal ? sealTimeoutMs : requestTimeoutMs;
      return checked(validatorId, async () =>
        builtOf(await admin.buildDocket(request, { timeoutMs, subjectToken })),
      );
    },
    async configure(validatorId, { patch, subjectToken }) {
      const { admin } = await connectionTo(validatorId);
      await admin.configure({ patchJson: patch }, { ...quick, subjectToken });
    },
    close() {
      for (const connection of connections.values()) close(connection);
      connections.clear();
    },
  };
}

const answerSchema = z.object({
  status: z.int().min(200).max(599),
  body: z.record(z.string(), z.unknown()),
  retryAfterSeconds: z.int().min(0).max(86_400),
});
const actedSchema = z.object({ status: z.string().max(64), changed: z.boolean() });
/** Fits a refusal with all of its violations. */
const maxAnswerBytes = 256 * 1024;

/** Parses a peer's answer, which is passed on to the client. */
export function answerOf(given: {
  readonly status: number;
  readonly bodyJson: Uint8Array;
  readonly retryAfterSeconds: number;
}): Answer {
  const { status, bodyJson, retryAfterSeconds } = given;
  if (bodyJson.length > maxAnswerBytes) throw malformedAnswer(undefined);
  const parsed = answerSchema.safeParse({ status, body: bodyOf(bodyJson), retryAfterSeconds });
  if (parsed.success) return parsed.data;
  throw malformedAnswer(parsed.error);
}

/** Undefined for malformed JSON. */
function bodyOf(bytes: Uint8Array): unknown {
  try {
    return toValue(scanJson(bytes));
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

function malformedAnswer(cause: unknown): AppError {
  return new AppError('bad_gateway', 'BAD_GATEWAY', 'A validator returned a malformed answer', { cause });
}
