import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sitePermit, startWorld, type World } from '../testing/world.ts';

const registerId = '0'.repeat(31).concat('2');
const blueprintId = 'site-permit-approval';
const data = {
  siteReference: 'AB-1234',
  floorAreaM2: 620,
  estimatedCostMinor: 1_000_000,
  hazardous: false,
  contact: { email: 'a@example.org' },
};

describe('execution helpers', () => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld('blueprint_helpers');
    world.wallets.set('admin', ['w-owner']);
    world.addRegister(registerId);
    await world.call('POST', '/api/blueprints', { body: sitePermit() });
    const override = { confirm: true };
    const { status } = await world.call('POST', `/api/blueprints/${blueprintId}/publish`, {
      body: { registerId, override },
    });
    expect(status).toBe(200);
  });
  afterAll(() => world.stop());

  const ask = (what: string, body: object = {}, token = 'user') =>
    world.call('POST', `/api/execution/${what}`, {
      token,
      body: { blueprintId, actionId: '0', data, ...body },
    });

  it.each([
    [620, false, { feeMinor: 15_500, riskTier: 'high', routeId: 'risky', next: ['1', 'safety-board'] }],
    [40, false, { feeMinor: 5_000, riskTier: 'normal', routeId: 'plain', next: ['2', 'planning-office'] }],
    [40, true, { feeMinor: 21_000, riskTier: 'high', routeId: 'risky', next: ['1', 'safety-board'] }],
  ])('evaluate %i m2, hazardous %s', async (floorAreaM2, hazardous, expected) => {
    const { feeMinor, riskTier, routeId } = expected;
    const [next, participant] = expected.next;
    for (const draft of [false, true]) {
      const asked = { data: { ...data, floorAreaM2, hazardous }, draft };
      const token = draft ? 'designer' : 'user';
      const calculated = await ask('calculate', asked, token);
      expect([calculated.status, calculated.body]).toEqual([
        200,
        {
          processedData: { ...asked.data, feeMinor, riskTier },
          calculatedFields: expect.arrayContaining(['feeMinor', 'riskTier']),
        },
      ]);
      expect((await ask('route', asked, token)).body).toEqual({
        nextActionId: next,
        nextParticipantId: participant,
        isWorkflowComplete: false,
        matchedCondition: routeId === 'risky' ? '{"==":[{"var":"riskTier"},"high"]}' : null,
        routeId,
        nextActions: [{ actionId: next, participantId: participant }],
      });
    }
  });

  it('show what each participant reads', async () => {
    const { body, headers } = await ask('disclose');
    const counts = body.disclosures.map((one: { participantId: string; fieldCount: number }) => [
      one.participantId,
      one.fieldCount,
    ]);
    expect(counts).toEqual([
      ['applicant', 7],
      ['planning-office', 7],
      ['safety-board', 4],
    ]);
    expect(body.disclosures[2].disclosedData).toEqual({
      siteReference: 'AB-1234',
      floorAreaM2: 620,
      hazardous: false,
      riskTier: 'high',
    });
    expect(headers['cache-control']).toBe('no-store');
  });

  it('say where data violates the schemas', async () => {
    expect((await ask('validate')).body).toEqual({ isValid: true, errors: [] });
    const { body } = await ask('validate', { data: { ...data, siteReference: 'ab', extra: 1 } });
    expect(body).toMatchObject({
      isValid: false,
      errors: expect.arrayContaining([
        expect.objectContaining({ path: '/siteReference', keyword: 'pattern' }),
        expect.objectContaining({ path: '', keyword: 'additionalProperties' }),
      ]),
    });
  });

  it('end a workflow where no action follows', async () => {
    const { body } = await ask('route', { actionId: 3, data: {} });
    expect(body).toMatchObject({ nextActionId: null, nextParticipantId: null, isWorkflowComplete: true });
  });

  it('answer about what the caller may read', async () => {
    const status = async (body: object, token = 'user') => {
      const answer = await ask('route', body, token);
      return [answer.status, answer.body.code];
    };
    expect(await status({}, 'stranger')).toEqual([404, 'BLUEPRINT_NOT_FOUND']);
    expect(await status({ registerId }, 'stranger')).toEqual([404, 'PUBLICATION_NOT_FOUND']);
    expect(await status({ draft: true }, 'stranger')).toEqual([404, 'BLUEPRINT_NOT_FOUND']);
    expect(await status({ blueprintId: 'unknown' })).toEqual([404, 'BLUEPRINT_NOT_FOUND']);
    expect(await status({ publicationTxId: 'f'.repeat(64) })).toEqual([404, 'PUBLICATION_NOT_FOUND']);
    expect(await status({ actionId: 77 })).toEqual([404, 'ACTION_NOT_FOUND']);
    expect((await status({ actionId: '-1' }))[0]).toBe(400);
    expect((await status({ actionId: '01' }))[0]).toBe(400);
    expect((await status({ data: [] }))[0]).toBe(400);
  });

  it('refuse logic that spends its budget, and go on', async () => {
    const list = Array.from({ length: 400 }, (_, index) => index);
    const inner = { reduce: [list, { '+': [{ var: 'current' }, { var: 'accumulator' }] }, 0] };
    const costly = sitePermit();
    const calculations = {
      feeMinor: { reduce: [{ map: [{ var: 'rows' }, inner] }, { '+': [1, { var: 'accumulator' }] }, 0] },
      riskTier: 'high',
    };
    Object.assign(costly.actions[0] ?? {}, { calculations });
    await world.call('POST', '/api/blueprints', { body: { ...costly, id: 'costly' } });
    const asked = { blueprintId: 'costly', draft: true, data: { ...data, rows: list } };
    const { status, body } = await ask('calculate', asked, 'designer');
    expect([status, body.code]).toEqual([422, 'LOGIC_BUDGET_EXCEEDED']);
    expect((await ask('calculate')).status).toBe(200);
  });

  it('draw a draft', async () => {
    const svg = await world.call('GET', `/api/blueprints/${blueprintId}/diagram`);
    expect([svg.status, svg.headers['content-type']]).toEqual([
      200,
      expect.stringContaining('image/svg+xml'),
    ]);
    const text = await world.call('GET', `/api/blueprints/${blueprintId}/diagram?format=mermaid`);
    expect([text.status, text.headers['content-type']]).toEqual([200, 'text/vnd.mermaid']);
    const other = await world.call('GET', `/api/blueprints/${blueprintId}/diagram`, { token: 'stranger' });
    expect(other.status).toBe(404);
  });
});
