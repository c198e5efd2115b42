import { inflateSync } from 'node:zlib';
import { z } from 'zod';
import type { Row } from '../report.ts';
import type { Stage } from '../stage.ts';
import { perCpuSecond } from '../ways-in/tenant.ts';
import type { Lengths } from '../workflows/lengths.ts';
import { bySides, type Exchange, type ExchangeSide, holderKey, openExchange } from './exchange.ts';

const inFlight = 8;
const stateSchema = z.object({ credentialIds: z.array(z.string()) });
const placeSchema = z.object({
  status: z.object({ status_list: z.object({ idx: z.int(), uri: z.string() }) }),
});
const listSchema = z.object({ status_list: z.object({ bits: z.literal(2), lst: z.string() }) });
const suspended = 2;

interface Listed {
  readonly credentialId: string;
  readonly index: number;
  readonly path: string;
}

/** One change among 131,072 statuses until a decoder of the list sees it; reads of the list, beside a static answer. */
export async function statusLists(stage: Stage, lengths: Lengths): Promise<readonly Row[]> {
  const exchange = await openExchange(stage, 'status');
  try {
    const listed = await takeListed(exchange);
    const delays: number[] = [];
    for (let round = 0; round < lengths.rounds * 2; round += 1) delays.push(await flip(exchange, listed));
    const list = await exchange.ours.send('GET', listed.path);
    await exchange.program.tell(JSON.stringify({ list }));
    const rate = (side: ExchangeSide) =>
      perCpuSecond(side.pid, Array.from({ length: 4 * lengths.helperRequests }), inFlight, () =>
        side.send('GET', listed.path),
      );
    const reads = await bySides(
      lengths,
      async () => [await rate(exchange.ours), await rate(exchange.raw)] as const,
    );
    return [
      {
        measure: 'a status of 131,072 changed until a decoder sees it',
        ours: delays,
        raw: [],
        unit: 'ms',
        bound: { kind: 'printed' },
      },
      {
        measure: 'reads of a status list per CPU second',
        ...reads,
        unit: '/s',
        bound: { kind: 'share', atLeast: 0.6 },
      },
    ];
  } finally {
    await exchange.close();
  }
}

async function takeListed({ ours, offerOne, configurationId, organization }: Exchange): Promise<Listed> {
  const offer = await offerOne();
  const token = await ours.token(offer.preAuthorizedCode);
  const body = ours.body(configurationId, [holderKey()], await ours.nonce());
  const [compact = ''] = await ours.credentials(token, body);
  const { idx, uri } = placeSchema.parse(payloadOf(compact)).status.status_list;
  const authorization = `Bearer ${organization.service}`;
  const state = await ours.send('GET', `/api/v1/offers/${offer.offerId}`, { authorization });
  const [credentialId = ''] = stateSchema.parse(JSON.parse(state)).credentialIds;
  return { credentialId, index: idx, path: new URL(uri).pathname };
}

function payloadOf(jws: string): unknown {
  return JSON.parse(Buffer.from(jws.split('.')[1] ?? '', 'base64url').toString());
}

/** Suspends until a reader has seen it, in milliseconds; then reinstates. */
async function flip(
  { ours, organization }: Exchange,
  { credentialId, index, path }: Listed,
): Promise<number> {
  const change = (verb: string) =>
    ours.json(`/api/v1/credentials/${credentialId}/${verb}`, { reason: 'bench' }, organization.service);
  const begun = performance.now();
  await change('suspend');
  for (;;) {
    const { lst } = listSchema.parse(payloadOf(await ours.send('GET', path))).status_list;
    const bytes = inflateSync(Buffer.from(lst, 'base64url'));
    const status = ((bytes[Math.floor(index / 4)] ?? 0) >> ((index % 4) * 2)) & 3;
    if (status === suspended) break;
  }
  const tookMs = performance.now() - begun;
  await change('reinstate');
  return tookMs;
}
