import { createHash, randomUUID } from 'node:crypto';
import { type Site, sitePermit, startWorld } from './world.ts';

/** Data of an application that the safety board looks at. */
export const application = {
  siteReference: 'AB-1234',
  floorAreaM2: 620,
  estimatedCostMinor: 1_000_000,
  hazardous: false,
  contact: { email: 'ann@example.org' },
};

interface Turn {
  /** `user` when absent. */
  readonly token?: string;
  /** The applicant's when absent. */
  readonly wallet?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly more?: object;
}

/** The blueprint service with the wallets of three people who take part in site permits. */
export async function startPermits(name: string) {
  const world = await startWorld(name);
  const { keys, sealing } = world;
  const wallets = {
    applicant: keys.add('applicant', 'user'),
    office: keys.add('office', 'admin'),
    board: keys.add('board', 'designer'),
    stranger: keys.add('stranger', 'stranger'),
  };
  world.wallets.set('user', [wallets.applicant]);
  world.wallets.set('admin', [wallets.office]);
  world.wallets.set('designer', [wallets.board]);
  world.wallets.set('stranger', [wallets.stranger]);
  const at = { registerId: '', blueprintId: '', instanceId: '' };

  /** Makes a register with the published blueprint, and an instance of it. */
  async function prepare(devMode: boolean, change: (site: Site) => void = () => undefined): Promise<void> {
    at.registerId = createHash('sha256').update(randomUUID()).digest('hex').slice(0, 32);
    const roster = [{ subject: `did:platform:w:${wallets.office}`, role: 'Owner' } as const];
    world.addRegister(at.registerId, { devMode, roster });
    const site = sitePermit();
    change(site);
    const [applicant, office, board] = site['participants'] as object[];
    at.blueprintId = `permit-${at.registerId.slice(0, 8)}`;
    const participants = [
      applicant,
      { ...office, walletAddress: wallets.office },
      { ...board, walletAddress: wallets.board },
    ];
    await world.call('POST', '/api/blueprints', { body: { ...site, participants, id: at.blueprintId } });
    const override = { confirm: true, reason: 'test' };
    const published = await world.call('POST', `/api/blueprints/${at.blueprintId}/publish`, {
      body: { registerId: at.registerId, override },
    });
    if (published.status !== 200) throw new Error(JSON.stringify(published.body));
    const body = { blueprintId: at.blueprintId, registerId: at.registerId };
    at.instanceId = (await world.call('POST', '/api/instances/', { token: 'user', body })).body.instanceId;
  }

  /** Forgets what an earlier test asked of wallets and registers. */
  function reset(): void {
    keys.hooks.beforeFindKey = undefined;
    keys.hooks.beforeSign = undefined;
    keys.hooks.afterSign = undefined;
    sealing.hooks.beforeSubmit = undefined;
    sealing.hooks.afterSubmit = undefined;
    sealing.participantKeys.splice(0);
    sealing.submissions.splice(0);
    keys.signatures.splice(0);
  }

  const execute = (actionId: number, payloadData: object, turn: Turn = {}) =>
    world.call('POST', `/api/instances/${at.instanceId}/actions/${actionId}/execute`, {
      token: turn.token ?? 'user',
      body: { senderWallet: turn.wallet ?? wallets.applicant, payloadData, ...turn.more },
      ...(turn.headers !== undefined && { headers: turn.headers }),
    });
  const operation = async (id: string, token = 'user') =>
    (await world.call('GET', `/api/operations/${id}`, { token })).body;

  return {
    world,
    wallets,
    at,
    prepare,
    reset,
    execute,
    operation,
    apply: (turn: Turn = {}) => execute(0, application, turn),
    instance: async () =>
      (await world.call('GET', `/api/instances/${at.instanceId}`, { token: 'user' })).body,
    sealed: () => world.registers.get(at.registerId)?.steps ?? [],
    /** Takes an action on an encrypted register and answers its operation at the end. */
    async done(actionId: number, payload: object, turn: Turn) {
      const { status, body } = await execute(actionId, payload, turn);
      if (status !== 202) throw new Error(JSON.stringify(body));
      await world.runner.settle();
      const ended = await operation(body.operationId, turn.token);
      if (ended.status !== 'Complete') throw new Error(JSON.stringify(ended));
      return ended;
    },
  };
}
