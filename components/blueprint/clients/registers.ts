import { z } from 'zod';
import type { JsonObject } from '#core/encoding/json.ts';
import { isAppError } from '#core/errors/errors.ts';
import { ROSTER_ROLES } from '#core/ledger/owner-attestation.ts';
import type { Endpoint } from '#kit/config/config.ts';
import { createServiceClient, type ServiceAnswer } from '#kit/http/http.ts';
import { serviceSpiffeId } from '#kit/workload/workload.ts';
import { refusal } from '../errors.ts';
import type { PeerOptions } from './peer.ts';

const rosterSchema = z.object({
  members: z.array(z.object({ subject: z.string(), role: z.enum(ROSTER_ROLES) })),
});

/** The owner and the members that govern a register. */
export type Roster = z.output<typeof rosterSchema>['members'];

const publishedSchema = z.object({ publicationTxId: z.string(), alreadyPublished: z.boolean() });
type Published = z.output<typeof publishedSchema>;

const sandboxSchema = z.object({ registerId: z.string(), hasBegun: z.boolean() });

interface Publishing {
  readonly registerId: string;
  readonly blueprintId: string;
  readonly definition: JsonObject;
  /** DID of the member of the roster that publishes. */
  readonly member: string;
  readonly execDefHash: string;
}

const refusedSchema = z.object({ code: z.string(), error: z.string().default('') });

/** The routes of the register service that this one calls. */
export interface Registers {
  /** Whether the owner of a token may read a register. */
  canRead(bearer: string, registerId: string): Promise<boolean>;
  /**
   * The roster of a register.
   * @throws AppError GOVERNANCE_ROSTER_NOT_SEALED for a register without one, GOVERNANCE_ROSTER_UNAVAILABLE when it
   * cannot be read
   */
  getRoster(registerId: string): Promise<Roster>;
  /**
   * Submits the publication of a definition.
   * @throws AppError PUBLISH_ROLE_REQUIRED, GOVERNANCE_ROSTER_NOT_SEALED, REGISTER_UNAVAILABLE, REGISTER_REFUSED
   */
  publish(publishing: Publishing): Promise<Published>;
  /**
   * The register in which an organisation rehearses, created when it does not exist.
   * @param walletAddress wallet of this service, which owns the register
   * @throws AppError unavailable REGISTER_UNAVAILABLE
   */
  ensureSandbox(organizationId: string, walletAddress: string): Promise<string>;
}

const retryAfterSeconds = 5;

/** The register service over HTTP; it connects on the first call. */
export function connectRegisters(address: Endpoint, options: PeerOptions): Registers & { close(): void } {
  const { workload, token } = options;
  const expect = serviceSpiffeId(workload.trustDomain, 'service-register');
  const client = createServiceClient({ workload, address, expect, timeoutMs: 15_000 });
  return {
    canRead: async (bearer, registerId) => {
      const answer = await client.call({ method: 'GET', path: `/api/registers/${registerId}`, bearer });
      if (answer.status === 200) return true;
      if (answer.status === 404 || answer.status === 403) return false;
      throw refusal('REGISTER_UNAVAILABLE');
    },
    getRoster: async (registerId) => {
      const path = `/api/registers/${registerId}/governance/roster`;
      try {
        return rosterOf(await client.call({ method: 'GET', path, bearer: await token() }));
      } catch (cause) {
        if (isAppError(cause) && cause.code.startsWith('GOVERNANCE_ROSTER_')) throw cause;
        throw refusal('GOVERNANCE_ROSTER_UNAVAILABLE', { cause });
      }
    },
    publish: async ({ registerId, blueprintId, definition, member, execDefHash }) => {
      const body = {
        blueprintId,
        blueprint: definition,
        publishedBy: member,
        callerDid: member,
        execDefHash,
      };
      const path = `/api/registers/${registerId}/blueprints/publish`;
      const bearer = await token();
      const answer = await client.call({ method: 'POST', path, bearer, body }).catch((cause: unknown) => {
        throw refusal('REGISTER_UNAVAILABLE', { cause });
      });
      return publishedOf(answer);
    },
    ensureSandbox: async (organizationId, walletAddress) => {
      const path = `/api/internal/sandboxes/${organizationId}`;
      const request = { method: 'PUT', path, bearer: await token(), body: { walletAddress } } as const;
      const { status, body } = await client.call(request).catch((cause: unknown) => {
        throw refusal('REGISTER_UNAVAILABLE', { cause });
      });
      const sandbox = sandboxSchema.safeParse(body);
      if (status !== 200 || !sandbox.success || !sandbox.data.hasBegun)
        throw refusal('REGISTER_UNAVAILABLE', { retryAfterSeconds });
      return sandbox.data.registerId;
    },
    close: () => client.close(),
  };
}

function rosterOf({ status, body }: ServiceAnswer): Roster {
  if (status === 200) return rosterSchema.parse(body).members;
  const { code } = refusedSchema.parse(body);
  if (status === 404 || code === 'REGISTER_NOT_READY' || code === 'GOVERNANCE_ROSTER_NOT_SEALED')
    throw refusal('GOVERNANCE_ROSTER_NOT_SEALED', { retryAfterSeconds });
  throw refusal('GOVERNANCE_ROSTER_UNAVAILABLE');
}

function publishedOf({ status, body, retryAfterSeconds: seconds }: ServiceAnswer): Published {
  if (status === 200) {
    const published = publishedSchema.safeParse(body);
    if (published.success) return published.data;
    throw refusal('REGISTER_REFUSED', { cause: published.error });
  }
  const { code = '', error = '' } = refusedSchema.safeParse(body).data ?? {};
  if (code === 'PUBLISH_ROLE_REQUIRED') throw refusal('PUBLISH_ROLE_REQUIRED');
  if (code === 'GOVERNANCE_ROSTER_NOT_SEALED' || code === 'REGISTER_NOT_FOUND')
    throw refusal('GOVERNANCE_ROSTER_NOT_SEALED', { retryAfterSeconds });
  if (status === 503 || status === 429)
    throw refusal('REGISTER_UNAVAILABLE', { retryAfterSeconds: Math.max(1, seconds) });
  throw refusal('REGISTER_REFUSED', {
    message: `the register refused the publication: ${error}`,
    details: { reason: code },
  });
}
