import { z } from 'zod';
import { scanJson, toValue } from '#core/encoding/json.ts';
import { AppError, isAppError } from '#core/errors/errors.ts';
import type { Runtime } from '#kit/lifecycle/lifecycle.ts';
import { createRpcClient, type RpcClient } from '#kit/rpc/rpc.ts';
import { serviceSpiffeId, type Workload } from '#kit/workload/workload.ts';
import { ValidatorAdminService } from '#protos/gen/chancery/validator/v1/admin_pb.js';
import { SubmissionService } from '#protos/gen/chancery/validator/v1/validator_pb.js';
import type { Act } from '../admin/modes.ts';
import { assertReport } from '../admin/parse.ts';
import type { ValidatorReport } from '../admin/report.ts';
import { reportOf } from '../admin/wire.ts';
import type { Answer } from '../admission/answer.ts';
import { type HeldEvidence, heldOf } from '../evidence/wire.ts';
import type { BuildOrder, Built } from '../inspection/build.ts';
import type { Waiting, WaitingWindow } from '../inspection/waiting.ts';
import { builtOf, waitingOf } from '../inspection/wire.ts';
import type { Directory } from './directory.ts';

/** What one validator asks of another one. An outage is an AppError of kind unavailable or timeout. */
export interface Colleagues {
  /** Hands a submission on; the other one does not hand it on again. */
  submit(validatorId: string, submission: Uint8Array): Promise<Answer>;
  /** @param registerId empty for every register */
  report(validatorId: string, registerId: string): Promise<ValidatorReport>;
  /** What the other one holds of a register, not verified. */
  evidence(validatorId: string, registerId: string): Promise<readonly HeldEvidence[]>;
  /** What waits there for a register, for the caller whose token it is. */
  listWaiting(validatorId: string, asked: Asked & WaitingWindow): Promise<Waiting>;
  /** The docket that would be proposed there, for the caller whose token it is. */
  buildDocket(validatorId: string, asked: Asked & BuildOrder): Promise<Built>;
  /** Changes the configuration there in the name of a system administrator. */
  configure(
    validatorId: string,
    order: { readonly patch: Uint8Array; readonly subjectToken: string },
  ): Promise<void>;
  /** Starts, stops, pauses or resumes a register there in the name of a system administrator. */
  act(validatorId: string, request: ActOrder): Promise<Acted>;
}

export interface ActOrder {
  readonly registerId: string;
  readonly act: Act;
  /** The system administrator's own access token: no validator stops another one by its own word. */
  readonly subjectToken: string;
}

/** A question about a register, with the token of who asks it. */
export interface Asked {
  readonly registerId: string;
  readonly subjectToken: string;
}

export interface Acted {
  readonly status: string;
  /** False when it was so already. */
  readonly changed: boolean;
}

export interface ColleagueOptions {
  readonly directory: Directory;
  readonly runtime: Runtime;
  readonly workload: Workload;
  readonly token: () => Promise<string>;
  /** Another validator answered with what is no answer. */
  onFault?(validatorId: string): void;
}

interface Connection {
  readonly endpoint: string;
  readonly submissions: RpcClient<typeof SubmissionService.method>;
  readonly admin: RpcClient<typeof ValidatorAdminService.method>;
}

/** A person waits for the answer of all: one that does not answer in this time is named as unreachable. */
const questionTimeoutMs = 2_000;
const submitTimeoutMs = 5_000;
/** As long as a vote may take, with room for the answer. */
const sealTimeoutMs = 32_000;

/** One connection a validator; an endpoint that moved replaces it. Each must prove the identity it is called by. */
export function connectColleagues(options: ColleagueOptions): Colleagues & { close(): void } {
  const { directory, ...peer } = options;
  const connections = new Map<string, Connection>();

  function close(connection: Connection): void {
    connection.submissions.close();
    connection.admin.close();
  }

  async function at(validatorId: string): Promise<Connection> {
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

  /** What an answer comes to; that it is none is its sender's fault. */
  async function judged<T>(validatorId: string, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask();
    } catch (error) {
      const isNone = isAppError(error, 'bad_gateway') || error instanceof z.ZodError;
      if (isNone) options.onFault?.(validatorId);
      throw isNone ? noAnswer(error) : error;
    }
  }

  const quick = { timeoutMs: questionTimeoutMs };
  return {
    async submit(validatorId, submissionJson) {
      const { submissions } = await at(validatorId);
      const request = { submissionJson, forwarded: true };
      return judged(validatorId, async () =>
        answerOf(await submissions.submit(request, { timeoutMs: submitTimeoutMs })),
      );
    },
    async report(validatorId, registerId) {
      const { admin } = await at(validatorId);
      return judged(validatorId, async () =>
        assertReport(reportOf(await admin.getStatus({ registerId }, quick))),
      );
    },
    async evidence(validatorId, registerId) {
      const { admin } = await at(validatorId);
      return judged(validatorId, async () => heldOf(await admin.listEvidence({ registerId }, quick)));
    },
    async act(validatorId, { registerId, act, subjectToken }) {
      const { admin } = await at(validatorId);
      return judged(validatorId, async () =>
        actedSchema.parse(await admin.act({ registerId, act }, { ...quick, subjectToken })),
      );
    },
    async listWaiting(validatorId, { subjectToken, ...asked }) {
      const { admin } = await at(validatorId);
      return judged(validatorId, async () =>
        waitingOf(await admin.listWaiting(asked, { ...quick, subjectToken })),
      );
    },
    async buildDocket(validatorId, { subjectToken, ...asked }) {
      const { admin } = await at(validatorId);
      const timeoutMs = asked.seal ? sealTimeoutMs : questionTimeoutMs;
      return judged(validatorId, async () =>
        builtOf(await admin.buildDocket(asked, { timeoutMs, subjectToken })),
      );
    },
    async configure(validatorId, { patch, subjectToken }) {
      const { admin } = await at(validatorId);
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
/** A refusal with all of its findings, or a record's acknowledgement. */
const mostAnswerBytes = 256 * 1024;

/** What another validator answered goes to our client: it must be an answer. */
export function answerOf(given: {
  readonly status: number;
  readonly bodyJson: Uint8Array;
  readonly retryAfterSeconds: number;
}): Answer {
  const { status, bodyJson, retryAfterSeconds } = given;
  if (bodyJson.length > mostAnswerBytes) throw noAnswer(undefined);
  const parsed = answerSchema.safeParse({ status, body: bodyOf(bodyJson), retryAfterSeconds });
  if (parsed.success) return parsed.data;
  throw noAnswer(parsed.error);
}

/** Undefined for what is no JSON of ours. */
function bodyOf(bytes: Uint8Array): unknown {
  try {
    return toValue(scanJson(bytes));
  } catch (error) {
    if (isAppError(error, 'invalid')) return undefined;
    throw error;
  }
}

function noAnswer(cause: unknown): AppError {
  return new AppError('bad_gateway', 'BAD_GATEWAY', 'A validator answered with something else', { cause });
}
