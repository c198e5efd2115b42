import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import type { Caller } from '#core/identity/claims.ts';
import { SYSTEM_ORGANIZATION_ID } from '#core/identity/well-known.ts';
import { systemClock } from '#kit/clock/clock.ts';
import type { RpcContext } from '#kit/rpc/rpc.ts';
import {
  ActRequestSchema,
  BuildDocketRequestSchema,
  ConfigureRequestSchema,
  GetStatusRequestSchema,
  ListWaitingRequestSchema,
} from '#protos/gen/chancery/validator/v1/admin_pb.js';
import type { SettingChanges } from '../configuration/settings.ts';
import { registerId, registerReport, validatorReport } from '../reports/reports.fixture.ts';
import { adminHandlers } from './rpc.ts';

const administrator = {
  kind: 'user',
  tier: 'platform',
  organizationId: SYSTEM_ORGANIZATION_ID,
  roles: ['SystemAdmin'],
} as Partial<Caller> as Caller;
const userCaller = { ...administrator, roles: ['User'] } as Caller;

function contextOf(clientId: string, subject?: Caller): RpcContext {
  const peer = { clientId, spiffeId: `spiffe://test/service/${clientId}` };
  return { peer, signal: new AbortController().signal, ...(subject && { subject }) };
}

const configured: unknown[] = [];
const previewDeps = {
  validatorId: 'validator-0',
  clock: systemClock(),
  isSubscribed: async () => false,
  getRegister: () => undefined,
  configuration: {
    parse: (patch: unknown) => new Map([['logLevel' as const, JSON.stringify(patch)]]),
    apply: (changes: SettingChanges) => {
      configured.push(...changes);
    },
  },
};
const acted: string[] = [];
const handlers = adminHandlers({
  report: (id) => validatorReport('validator-0', [registerReport({ registerId: id })]),
  evidence: () => [],
  ...previewDeps,
  changeModeHere: async (id, act) => {
    acted.push(`${act} ${id}`);
    return { status: 'Stopped', changed: true };
  },
});
const stop = create(ActRequestSchema, { registerId, act: 'stop' });

describe('requests of one validator to another', () => {
  it('return its status', async () => {
    const request = create(GetStatusRequestSchema, { registerId });
    const status = await handlers.getStatus(request, contextOf('validator-1'));
    expect(status.registers?.[0]).toMatchObject({ registerId, quorum: 3 });
  });

  it.each([
    ['another validator by its own word', contextOf('validator-1')],
    ['another validator in the name of a user without the system role', contextOf('validator-1', userCaller)],
  ])('may not stop a register: %s', async (_who, context) => {
    acted.length = 0;
    await expect(handlers.act(stop, context)).rejects.toMatchObject({ kind: 'forbidden' });
    expect(acted).toEqual([]);
  });

  it.each([
    ['a system administrator through another validator', contextOf('validator-1', administrator)],
    ['the register service', contextOf('service-register')],
  ])('may stop a register: %s', async (_who, context) => {
    acted.length = 0;
    expect(await handlers.act(stop, context)).toEqual({ status: 'Stopped', changed: true });
    expect(acted).toEqual([`stop ${registerId}`]);
  });

  it('refuse the mempool and dockets to callers that may not see the register', async () => {
    const waiting = create(ListWaitingRequestSchema, { registerId, limit: 10 });
    const building = create(BuildDocketRequestSchema, { registerId });
    const context = contextOf('validator-1', userCaller);
    await expect(handlers.listWaiting(waiting, context)).rejects.toMatchObject({ kind: 'not_found' });
    await expect(handlers.buildDocket(building, context)).rejects.toMatchObject({ kind: 'not_found' });
    const withoutSubject = contextOf('validator-1');
    await expect(handlers.listWaiting(waiting, withoutSubject)).rejects.toMatchObject({
      kind: 'unauthenticated',
    });
    await expect(handlers.buildDocket(building, withoutSubject)).rejects.toMatchObject({
      kind: 'unauthenticated',
    });
  });

  it('change the configuration for a system administrator only', async () => {
    const request = create(ConfigureRequestSchema, { patchJson: Buffer.from('{"logLevel":"warn"}') });
    for (const context of [contextOf('validator-1', userCaller), contextOf('service-register')])
      await expect(handlers.configure(request, context)).rejects.toMatchObject({ kind: 'forbidden' });
    expect(configured).toEqual([]);
    expect(await handlers.configure(request, contextOf('validator-1', administrator))).toEqual({});
    expect(configured).toEqual([['logLevel', '{"logLevel":"warn"}']]);
  });

  it('refuse unknown commands', async () => {
    const request = create(ActRequestSchema, { registerId, act: 'destroy' });
    await expect(handlers.act(request, contextOf('service-register'))).rejects.toMatchObject({
      kind: 'invalid',
    });
  });
});
