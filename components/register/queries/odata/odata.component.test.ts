import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { buildDocket } from '../../testing/build-docket.ts';
import { testKey } from '../../testing/keys.ts';
import { startTestRegister, type TestRegister } from '../../testing/register.ts';
import { transaction } from '../../testing/sealed.ts';

const [alice, bob] = [testKey(1).walletAddress, testKey(2).walletAddress];

describe('OData', () => {
  let register: TestRegister;
  let registerId: string;
  let otherId: string;
  let foreignId: string;
  let txIds: string[] = [];

  beforeAll(async () => {
    register = await startTestRegister('odata');
    registerId = await register.createRegister('Loans');
    otherId = await register.createRegister("O'Hara; drop table registers;--");
    foreignId = await register.createRegister('Theirs');
    await register.database.pool.query(
      `update subscriptions set organization_id = '22222222-2222-4222-8222-222222222222'
       where register_no = (select register_no from registers where register_id = $1)`,
      [foreignId],
    );
    for (const id of [registerId, otherId, foreignId]) {
      for (let docket = 0; docket < 4; docket += 1) {
        const rows = Array.from({ length: 3 }, (_, n) => {
          const index = docket * 3 + n;
          return transaction({
            registerId: id,
            key: testKey(n + 1),
            payload: { id, index },
            blueprintId: n === 2 ? undefined : `blueprint-${docket % 2}`,
            actionId: String(n),
            createdAt: new Date(Date.now() - 60_000 + index * 1_000).toISOString().replace('Z', '1230+00:00'),
          });
        });
        const bundle = buildDocket(await register.state(id), rows, register.members);
        expect((await register.ledger.writeDocket(bundle)).outcome).toBe('stored');
        if (id === registerId) txIds = [...txIds, ...rows.map(({ txId }) => txId)];
      }
    }
  });
  afterAll(() => register.stop());

  const get = (path: string, options: Record<string, string> = {}, token = 'admin') =>
    register.call('GET', `/odata/${path}?${new URLSearchParams(options)}`, {
      token,
      headers: { host: 'ledger.test' },
    });
  const values = async (path: string, options: Record<string, string> = {}, token?: string) => {
    const answer = await get(path, options, token);
    expect([answer.status, answer.text.slice(0, 200)]).toEqual([200, expect.any(String)]);
    return answer.body.value;
  };
  const own = () => `registerId eq '${registerId}'`;
  const refusedAt = async (options: Record<string, string>, path = 'Transactions') => {
    const { status, body } = await get(path, options);
    return [status, body.error?.code, body.error?.target, body.error?.innererror?.position];
  };

  it('serves its metadata', async () => {
    const service = await get('');
    expect(service.headers).toMatchObject({ 'odata-version': '4.0' });
    expect(service.body.value.map(({ name }: { name: string }) => name)).toEqual([
      'Registers',
      'Transactions',
      'Dockets',
    ]);
    const xml = await get('$metadata');
    expect(xml.headers['content-type']).toMatch(/^application\/xml/);
    expect(xml.text).toContain('<EntitySet Name="Dockets" EntityType="Chancery.Docket"/>');
    const asJson = await get('$metadata', { $format: 'json' });
    expect(asJson.body.Chancery.Transaction.$Key).toEqual(['registerId', 'txId']);
    expect((await register.call('GET', '/odata/Registers')).status).toBe(401);
  });

  it('lists only what the organisation may see', async () => {
    const seen = await values('Registers');
    expect(seen.map(({ id }: { id: string }) => id)).toEqual([otherId, registerId]);
    expect((await values('Registers', {}, 'stranger')).map(({ id }: { id: string }) => id)).toEqual([
      foreignId,
    ]);
    for (const filter of [
      `registerId eq '${foreignId}'`,
      `registerId in ('${foreignId}')`,
      `not (registerId eq '${registerId}') and not (registerId eq '${otherId}')`,
      `registerId ne '${registerId}' and registerId ne '${otherId}' or false`,
    ]) {
      for (const set of ['Transactions', 'Dockets']) {
        const { body } = await get(set, { $filter: filter, $count: 'true' });
        expect([set, filter, body.value, body['@odata.count']]).toEqual([set, filter, [], 0]);
      }
    }
    const every = await values('Transactions', { $top: '100' });
    expect(new Set(every.map((row: { registerId: string }) => row.registerId))).toEqual(
      new Set([registerId, otherId]),
    );
    expect(every).toHaveLength(26);
    expect(await values('Transactions', { $top: '100' }, 'stranger')).toHaveLength(13);
    expect(await values('Transactions', { $top: '100' }, 'validator')).toHaveLength(39);
    expect((await get(`Registers('${foreignId}')`)).status).toBe(404);
    expect((await get(`Registers('${foreignId}')`, {}, 'stranger')).status).toBe(200);
  });

  it.each([
    [`senderAddress eq '${alice}'`, 4],
    [`'${alice}' eq senderAddress`, 4],
    [`senderAddress in ('${alice}','${bob}')`, 8],
    [`senderAddress in ('${alice}',null)`, 4],
    [`not (senderAddress eq '${alice}')`, 9],
    [`senderAddress eq '${alice}' and docketNumber ge 2`, 3],
    [`senderAddress eq '${alice}' or senderAddress eq '${bob}'`, 8],
    [`senderAddress eq '${alice}' and senderAddress eq '${bob}'`, 0],
    ["blueprintId eq 'blueprint-0'", 4],
    ["blueprintId eq 'blueprint-0' and blueprintId ne 'blueprint-1'", 4],
    ['blueprintId eq null', 4],
    ['null ne blueprintId', 9],
    ["blueprintId ne 'blueprint-0'", 9],
    ["not (blueprintId gt 'a')", 4],
    ["contains(blueprintId,'print-1')", 4],
    ["not contains(blueprintId,'print-1')", 5],
    ["startswith(blueprintId,'BLUE') or endswith(blueprintId,'-0')", 4],
    ["startswith(toupper(blueprintId),'BLUE')", 8],
    ["tolower(transactionType) eq 'action'", 12],
    ["transactionType eq 'Genesis'", 1],
    ['length(actionId) eq 1', 12],
    ['docketNumber eq 1', 3],
    ['1 eq docketNumber', 3],
    ['docketNumber gt 1 and docketNumber lt 3', 3],
    ['docketNumber in (1,3)', 6],
    ['docketNumber eq 1.5', 0],
    ['docketNumber le 99999999999999999999', 13],
    ['docketNumber ge -5', 13],
    ['position gt 0 and docketNumber ne 0', 8],
    ["docketId eq '2'", 3],
    [`year(timestamp) eq ${new Date().getUTCFullYear()}`, 13],
    ['timestamp lt now() and date(timestamp) ge 2026-01-01', 13],
    ['timestamp gt 2126-01-01', 0],
    ["status eq 'confirmed'", 13],
    ['true', 13],
    ['false or false', 0],
    ['null eq null', 13],
  ])('%s finds %i', async (filter, count) => {
    const options = { $filter: `${own()} and (${filter})`, $top: '100', $count: 'true' };
    const flat = { ...options, $filter: `${filter.includes(' or ') ? `(${filter})` : filter} and ${own()}` };
    for (const one of [options, flat]) {
      const { status, body } = await get('Transactions', one);
      expect([status, body.error, body.value?.length, body['@odata.count']]).toEqual([
        200,
        undefined,
        count,
        count,
      ]);
    }
  });

  it('finds rows by the values that it shows', async () => {
    for (const set of ['Transactions', 'Dockets', 'Registers']) {
      const [row] = await values(set, { $filter: set === 'Registers' ? 'true' : own(), $top: '1' });
      for (const [name, value] of Object.entries(row)) {
        const isTime = typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value);
        const literal = typeof value === 'string' && !isTime ? `'${value.replaceAll("'", "''")}'` : value;
        const found = await values(set, { $filter: `${name} eq ${literal}`, $top: '100' });
        expect([set, name, found.some((one: object) => JSON.stringify(one) === JSON.stringify(row))]).toEqual(
          [set, name, true],
        );
      }
    }
  });

  it('returns one entity by its key', async () => {
    const [, txId = ''] = txIds;
    const one = await get(`Transactions('${txId.toUpperCase()}')`);
    expect(one.body).toMatchObject({ registerId, txId, transactionId: txId, docketNumber: 1, position: 1 });
    expect(one.body['@odata.context']).toBe('http://ledger.test/odata/$metadata#Transactions/$entity');
    const both = await get(`Transactions(registerId='${registerId}',txId='${txId}')`, {
      $select: 'position',
    });
    expect(both.body).toEqual({
      '@odata.context': 'http://ledger.test/odata/$metadata#Transactions(position)/$entity',
      position: 1,
    });
    const docket = await get(`Dockets(docketNumber=0,registerId='${registerId}')`);
    expect(docket.body).toMatchObject({ registerId, docketNumber: 0, isGenesis: true });
    const guid = registerId.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    expect((await get(`Registers(${guid})`)).body.title).toBe('Loans');
    expect((await get(`Transactions('${'0'.repeat(64)}')`)).body.error.code).toBe('ENTITY_NOT_FOUND');
    expect((await get("Transactions('x')")).status).toBe(404);
    expect((await get('Dockets(3)')).status).toBe(400);
    expect((await get('Others(3)')).status).toBe(404);
  });

  it('selects, orders, counts and pages', async () => {
    const numbers = (rows: { docketNumber: number; position: number }[]) =>
      rows.map((row) => row.docketNumber * 10 + row.position);
    const newest = [42, 41, 40, 32, 31, 30, 22, 21, 20, 12, 11, 10, 0];
    expect(numbers(await values('Transactions', { $filter: own() }))).toEqual(newest);
    for (const [orderBy, expected] of [
      ['docketNumber', newest.toReversed()],
      ['docketNumber asc,position asc', newest.toReversed()],
      ['docketNumber asc, position desc', [0, 12, 11, 10, 22, 21, 20, 32, 31, 30, 42, 41, 40]],
      ['position,docketNumber desc', [40, 30, 20, 10, 0, 41, 31, 21, 11, 42, 32, 22, 12]],
      ['timestamp desc', undefined],
      ['timestamp', undefined],
      ['blueprintId desc, docketNumber, position', [0, 20, 21, 40, 41, 10, 11, 30, 31, 12, 22, 32, 42]],
    ] as const) {
      const options = { $filter: own(), $orderby: orderBy };
      const whole = numbers(await values('Transactions', options));
      expect(whole).toHaveLength(13);
      if (expected !== undefined) expect([orderBy, whole]).toEqual([orderBy, expected]);
      const paged: number[] = [];
      let path = `/odata/Transactions?${new URLSearchParams(options)}`;
      for (let pages = 0; pages < 10; pages += 1) {
        const { body } = await register.call('GET', path, {
          token: 'admin',
          headers: { prefer: 'odata.maxpagesize=3' },
        });
        paged.push(...numbers(body.value));
        if (body['@odata.nextLink'] === undefined) break;
        path = String(body['@odata.nextLink']).replace(/^https?:\/\/[^/]*/, '');
      }
      expect([orderBy, paged]).toEqual([orderBy, whole]);
      expect(numbers(await values('Transactions', { ...options, $skip: '5', $top: '4' }))).toEqual(
        whole.slice(5, 9),
      );
    }
    const [first] = await values('Dockets', { $select: 'docketNumber,hash', $top: '1', $filter: own() });
    expect(Object.keys(first)).toEqual(['docketNumber', 'hash']);
    expect((await get('Transactions/$count')).text).toBe('26');
    expect((await get('Dockets/$count', { $filter: own() })).text).toBe('5');
    expect((await get('Registers/$count', { $filter: "startswith(title,'Lo')" })).text).toBe('1');
    const titles = await values('Registers', { $orderby: 'title desc' });
    expect(titles.map(({ title }: { title: string }) => title[0])).toEqual(['O', 'L']);
    expect(await values('Transactions', { $top: '0' })).toEqual([]);
  });

  it('pages through every row of several registers once', async () => {
    const seen: string[] = [];
    let path = '/odata/Transactions';
    for (let pages = 0; pages < 30; pages += 1) {
      const { body } = await register.call('GET', path, {
        token: 'admin',
        headers: { prefer: 'maxpagesize=4' },
      });
      seen.push(...body.value.map((row: { registerId: string; txId: string }) => row.registerId + row.txId));
      if (body['@odata.nextLink'] === undefined) break;
      path = String(body['@odata.nextLink']).replace(/^https?:\/\/[^/]*/, '');
    }
    expect([seen.length, new Set(seen).size]).toEqual([26, 26]);
  });

  it('ignores a preferred size that is not in decimal digits', async () => {
    const sizeFor = async (prefer: string) =>
      (await register.call('GET', '/odata/Transactions', { token: 'admin', headers: { prefer } })).body.value
        .length;
    expect(await sizeFor('odata.maxpagesize="4"; x, y')).toBe(4);
    for (const size of ['4e1', '4x', '0x4', '4.5', '+4', '4 4']) {
      expect(await sizeFor(`maxpagesize=${size}`)).toBe(20);
    }
    for (const [option, text] of [
      ['$top', '1e1'],
      ['$top', '0x1'],
      ['$skip', '1%0a'],
      ['$skip', '%2B1'],
      ['$top', '%D9%A3'],
    ]) {
      const path = `/odata/Transactions?${option}=${text}`;
      expect((await register.call('GET', path, { token: 'admin' })).status, path).toBe(400);
    }
  });

  it.each([
    "x' or '1'='1",
    "'; drop table transactions; --",
    "%' or 1=1 --",
    '%',
    '_',
    '\\',
    "\\'; select pg_sleep(9); --",
    '$1',
    '$' + '{1}',
    ':id',
    '?',
    '/* */',
    'a\u2019b',
    "O'Hara; drop table registers;--",
  ])('treats %j as text', async (text) => {
    const literal = `'${text.replaceAll("'", "''")}'`;
    const filters = [`title eq ${literal}`, `contains(title,${literal})`, `endswith(title,${literal})`];
    const titles = ['Loans', "O'Hara; drop table registers;--"];
    const expected = [
      titles.filter((title) => title === text),
      titles.filter((title) => title.includes(text)),
      titles.filter((title) => title.endsWith(text)),
    ];
    for (const [index, filter] of filters.entries()) {
      const found = await values('Registers', { $filter: filter });
      expect(found.map(({ title }: { title: string }) => title).toSorted()).toEqual(expected[index]);
    }
    expect(await values('Transactions', { $filter: `senderAddress eq ${literal}` })).toEqual([]);
    expect(await values('Transactions', { $filter: `txId eq ${literal}` })).toEqual([]);
    expect(await values('Transactions', { $filter: `blueprintId in (${literal},'b')` })).toEqual([]);
    expect((await get(`Registers(${encodeURIComponent(literal)})`)).status).toBe(404);
  });

  it('reports the location of a syntax error', async () => {
    const invalid = (option: string, position: number) => [400, 'QUERY_INVALID', option, position];
    const foreign = (option: string, position: number) => [501, 'QUERY_NOT_SUPPORTED', option, position];
    expect(await refusedAt({ $top: '101' })).toEqual(invalid('$top', 0));
    expect((await get('Transactions', { $top: '101' })).body.error.message).toContain(
      "The limit of '100' for Top query has been exceeded",
    );
    expect(await refusedAt({ $skip: '10001' })).toEqual(invalid('$skip', 0));
    expect(await refusedAt({ $top: '-1' })).toEqual(invalid('$top', 0));
    expect(await refusedAt({ $count: 'yes' })).toEqual(invalid('$count', 0));
    expect(await refusedAt({ $skiptoken: 'x' })).toEqual(invalid('$skiptoken', 0));
    expect(await refusedAt({ $filter: "position eq 'a'" })).toEqual(invalid('$filter', 9));
    expect(await refusedAt({ $filter: 'docketNumber' })).toEqual(invalid('$filter', 0));
    expect(await refusedAt({ $filter: 'true and record eq 1' })).toEqual(invalid('$filter', 9));
    expect(await refusedAt({ $filter: 'sandbox gt true' }, 'Registers')).toEqual(invalid('$filter', 8));
    expect(await refusedAt({ $filter: 'contains(title)' }, 'Registers')).toEqual(invalid('$filter', 0));
    expect(await refusedAt({ $filter: 'contains(title,5)' }, 'Registers')).toEqual(invalid('$filter', 15));
    expect(await refusedAt({ $filter: 'pg_sleep(9)' })).toEqual(invalid('$filter', 0));
    expect(await refusedAt({ $filter: "senderAddress in ('a',5)" })).toEqual(invalid('$filter', 22));
    expect(await refusedAt({ $filter: 'length(null) eq 1' })).toEqual(invalid('$filter', 7));
    expect(await refusedAt({ $orderby: 'position,payload' })).toEqual(invalid('$orderby', 9));
    expect(await refusedAt({ $select: 'position,payload' })).toEqual(invalid('$select', 9));
    expect(await refusedAt({ filter: 'true' })).toEqual(invalid('filter', 0));
    expect(await refusedAt({ $expand: 'Dockets' })).toEqual(foreign('$expand', 0));
    expect(await refusedAt({ $filter: "substring(txId,1) eq 'a'" })).toEqual(foreign('$filter', 0));
    expect(await refusedAt({ $filter: 'position add 1 eq 2' })).toEqual(foreign('$filter', 9));
    expect(await refusedAt({ $format: 'atom' })).toEqual(foreign('$format', 0));
    const twice = await register.call('GET', '/odata/Transactions?$top=1&$top=2', { token: 'admin' });
    expect([twice.status, twice.body.error.code]).toEqual([400, 'INVALID_REQUEST']);
    const batch = await register.call('POST', '/odata/$batch', { token: 'admin', body: {} });
    expect([batch.status, batch.body.error.code]).toEqual([501, 'QUERY_NOT_SUPPORTED']);
  });
});
