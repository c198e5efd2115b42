import pg from 'pg';
import { SUBJECTS } from '#core/events/subjects.ts';
import { connectBus } from '#kit/bus/bus.ts';
import { createLogger } from '#kit/log/log.ts';
import { createOrganization, createPerson, type Person } from '../harness/governance.ts';
import { createRegister, waitOnline } from '../harness/journey.ts';
import { environmentOf } from '../harness/service-caller.ts';
import { inParallel } from '../harness/wait.ts';
import { clients, clientsPerUser, type FannedPairs, fan, fannedRows, inTurns } from './deliveries.ts';
import { barePlans, type ClientPlan, connectCrowd, hubGreetings } from './hubs/crowd.ts';
import { startRaw } from './raw/child.ts';
import type { Row } from './report.ts';
import type { Stage } from './stage.ts';

/** Rows of the event log in a round. */
const events = 40;
/** Signals of a docket with one transaction. */
const signalsOfDocket = 4;

interface Followed {
  readonly registerId: string;
  readonly plans: readonly ClientPlan[];
}

/** A register with docket 0 alone, and a client plan for each connection of the people who follow it. */
async function follow(stage: Stage): Promise<Followed> {
  const { api, token } = stage;
  const organization = await createOrganization(api, token, 'bench-followers');
  const owner = await createPerson(api, token, organization, { name: 'owner', role: 'Administrator' });
  const registerId = await createRegister(api, owner.token, 'Followed', owner.wallet);
  await waitOnline(api, owner.token, registerId);
  const people = await inParallel(
    Array.from({ length: clients / clientsPerUser }),
    4,
    (_, n): Promise<Person> => createPerson(api, token, organization, { name: `reader-${n}`, role: 'User' }),
  );
  const plans = people.flatMap((person) =>
    Array.from({ length: clientsPerUser }, () => ({
      path: `/hubs/register?access_token=${person.token}`,
      ...hubGreetings('SubscribeToRegister', [registerId]),
    })),
  );
  return { registerId, plans };
}

/** The same fan-out at the register hub through the gateway, beside bare `ws` through a byte tunnel, both over mutual TLS. */
export async function deliveriesThroughGateway(stage: Stage): Promise<readonly Row[]> {
  const { registerId, plans } = await follow(stage);
  const { DATABASE_URL, NATS_URL: url = '' } = environmentOf(stage.system.state, 'register');
  const log = createLogger({ service: 'bench', level: 'silent' });
  const bus = await connectBus({ url, name: 'bench', log });
  const database = new pg.Client({ connectionString: DATABASE_URL });
  await database.connect();
  const bare = await startRaw(new URL('./raw/broadcast.ts', import.meta.url), stage.svid);
  const tunnel = await startRaw(new URL('./raw/tunnel.ts', import.meta.url), {
    port: Number(bare.said),
    ...stage.svid,
  });
  const ofHub = await connectCrowd(Number(new URL(stage.system.state.gatewayUrl).port), plans);
  const ofBare = await connectCrowd(Number(tunnel.said), barePlans(clients));
  let messages: string[] = [];
  // Events are delivered at least once, so a row of a docket may be repeated.
  const insert = {
    name: 'again',
    text: `insert into register.outbox (kind, key, data) select kind, key, data from register.outbox
      where kind = 'DocketSealed' and key = $1 limit 1`,
    values: [registerId],
  };
  const say = async (): Promise<void> => {
    for (let n = 0; n < events; n++) {
      const heard = new Promise<void>((resolve) =>
        ofHub.onMessage((text) => {
          messages.push(text);
          resolve();
        }),
      );
      await database.query(insert);
      bus.publish(SUBJECTS.registerEvents);
      await heard;
    }
  };
  const records = events * signalsOfDocket * clients;
  const pairs: FannedPairs = { ours: [], raw: [] };
  try {
    await inTurns(
      pairs,
      () => {
        messages = [];
        return fan(ofHub, { pid: stage.pidOf('gateway'), records }, say);
      },
      async () => {
        await bare.tell(JSON.stringify({ all: messages }));
        return fan(ofBare, { pid: tunnel.pid, records }, () => bare.tell('send'));
      },
    );
  } finally {
    await Promise.all([ofHub.stop(), ofBare.stop()]);
    await Promise.all([bare.stop(), tunnel.stop(), bus.close(), database.end()]);
  }
  return fannedRows(`deliveries through the gateway, ${clients} clients in one group`, pairs, 0.7);
}
