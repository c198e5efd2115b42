import { z } from 'zod';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import type { Installation } from '../api/installation.ts';
import { validatorId } from '../api/names.ts';
import { operatorError } from '../errors.ts';
import type { MemberReport } from '../plan/validator-set/facts.ts';
import type { ServiceSessions } from './sessions.ts';
import { connectService, type Service } from './transport.ts';

/** Name and address of a member's pod. */
export interface MemberAddress {
  /** Name of the pod. */
  readonly name: string;
  /** Address of the pod. */
  readonly address: string;
}

/** Members, queried individually over mutual TLS; a member reports only about itself. */
export interface Members {
  /** Ensures identity and token for the members of an installation. Throws AppError, RequeueError. */
  ready(installation: Installation): Promise<void>;
  /**
   * The report of a member, within 5 s.
   *
   * Errors: unavailable, timeout, bad_gateway; a refusal of the member.
   */
  queryReport(
    installation: Installation,
    address: MemberAddress,
    signal?: AbortSignal,
  ): Promise<MemberReport>;
  /** Starts the drain of a member; the state is `Drained` when it has ended. Idempotent. Throws like queryReport, and NotLeader. */
  drain(
    installation: Installation,
    address: MemberAddress,
    signal?: AbortSignal,
  ): Promise<{ readonly state: string }>;
  /** Cancels a drain. Idempotent. Throws like drain. */
  undrain(installation: Installation, address: MemberAddress, signal?: AbortSignal): Promise<void>;
  stop(): void;
}

const HTTPS_PORT = 7443;
/** Timeout of a report. */
const answerMs = 5_000;

const word = z.string().max(4096);
const count = z.number().int().min(0).max(Number.MAX_SAFE_INTEGER);
const registerReport = z.object({
  registerId: z.string().regex(/^[0-9a-f]{32}$/),
  status: word,
  membership: word,
  isMember: z.boolean(),
  height: count,
  round: count,
  role: word,
  isProposer: z.boolean(),
  quorum: count,
  members: z.array(word).max(1_000),
  behind: count,
  roots: z.array(z.object({ height: count, root: word })).max(1_000),
  evidence: z.array(z.object({ kind: word, validatorIds: z.array(word).max(100) })).max(1_000),
});
const drainReport = z.object({
  state: z.enum(['None', 'Draining', 'Drained']),
  since: z.string().max(64).nullish(),
});
const memberReport = z.object({
  validatorId: word,
  did: word.optional(),
  walletAddress: word.optional(),
  publicKey: word.optional(),
  version: word,
  protocolVersion: count,
  drain: drainReport,
  conditions: z.array(z.object({ type: word, reason: word, message: word })).max(100),
  heard: z.array(z.object({ validatorId: word, heardAt: word })).max(1_000),
  registers: z.array(registerReport).max(10_000),
});

interface MemberConnection {
  readonly address: string;
  readonly installation: Installation;
  readonly service: Service;
}

/** Connections to members, kept while the address of the pod is unchanged. */
export function connectMembers(sessions: ServiceSessions): Members {
  const connections = new Map<string, MemberConnection>();

  const serviceOf = async (
    installation: Installation,
    { name, address }: MemberAddress,
  ): Promise<Service> => {
    const session = await sessions.of(installation);
    const key = `${installation.installation}/${name}`;
    const before = connections.get(key);
    if (before?.address === address && before.installation === installation) return before.service;
    before?.service.close();
    const service = connectService({
      name: `validator ${name}`,
      host: address,
      port: HTTPS_PORT,
      expect: serviceSpiffeId(installation.installation, validatorId(name)),
      identity: session.workload,
      token: session.token,
      guard: session.guard,
    });
    connections.set(key, { address, installation, service });
    return service;
  };

  const exchange = async <T>(
    installation: Installation,
    address: MemberAddress,
    of: {
      readonly method: 'GET' | 'POST';
      readonly path: string;
      readonly answer: z.ZodType<T>;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<T> => {
    const service = await serviceOf(installation, address);
    const late = AbortSignal.timeout(answerMs);
    const signal = of.signal === undefined ? late : AbortSignal.any([of.signal, late]);
    const body = of.method === 'POST' ? { body: {} } : {};
    try {
      return await service.call({ method: of.method, path: of.path, ...body, signal }, of.answer);
    } catch (cause) {
      if (!late.aborted) throw cause;
      throw operatorError('MEMBER_SILENT', `${address.name} did not answer within 5 s`, { cause });
    }
  };

  return {
    ready: async (installation) => void (await (await sessions.of(installation)).token()),
    queryReport: (installation, address, signal) =>
      exchange(installation, address, {
        method: 'GET',
        path: '/api/internal/consensus',
        answer: memberReport,
        signal,
      }),
    drain: (installation, address, signal) =>
      exchange(installation, address, {
        method: 'POST',
        path: '/api/internal/drain',
        answer: drainReport,
        signal,
      }),
    undrain: async (installation, address, signal) => {
      const of = { method: 'POST', path: '/api/internal/undrain', answer: drainReport, signal } as const;
      await exchange(installation, address, of);
    },
    stop: () => {
      for (const { service } of connections.values()) service.close();
      connections.clear();
    },
  };
}
