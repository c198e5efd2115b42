import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { z } from 'zod';
import type { OwnPages } from '../../harness/balancer.ts';
import type { FollowOptions, Report } from './follow.ts';

const reportSchema = z.union([
  z.object({ kind: z.literal('subscribed'), replayed: z.number(), complete: z.boolean() }),
  z.object({
    kind: z.literal('signal'),
    target: z.string(),
    args: z.array(z.union([z.string(), z.number()])),
  }),
  z.object({ kind: z.literal('reconnecting') }),
  z.object({ kind: z.literal('failed'), message: z.string() }),
]);

/** A page that follows a register in a browser. */
export interface Page {
  /** Serves the page, its scripts, and takes its reports. */
  readonly ownPages: OwnPages;
  /** Begins to follow anew at the next load of the page. */
  expect(options: Omit<FollowOptions, 'url'>, listener: (report: Report) => void): void;
  /** `User-Agent` of the last report. */
  browser(): string;
}

/** Path of the page. */
export const PAGE_PATH = '/following';

const script = 'text/javascript; charset=utf-8';

/** Prepares the page; its hub is the one of its own origin. */
export function createPage(): Page {
  const library = createRequire(import.meta.url).resolve('@microsoft/signalr/dist/browser/signalr.js');
  const files: Readonly<Record<string, () => readonly [type: string, text: string]>> = {
    [PAGE_PATH]: () => ['text/html; charset=utf-8', htmlOf(options)],
    [`${PAGE_PATH}/signalr.js`]: () => [script, readFileSync(library, 'utf8')],
    [`${PAGE_PATH}/follow.js`]: () => [script, followScript()],
  };
  let options: Omit<FollowOptions, 'url'> | undefined;
  let listener: (report: Report) => void = () => undefined;
  let browser = '';
  const take = (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      browser = request.headers['user-agent'] ?? '';
      const parsed = reportSchema.safeParse(JSON.parse(Buffer.concat(chunks).toString()));
      listener(parsed.success ? parsed.data : { kind: 'failed', message: `a report has ${parsed.error}` });
      response.writeHead(204).end();
    });
  };
  const ownPages: OwnPages = (request, response) => {
    const path = request.url ?? '';
    if (path === `${PAGE_PATH}/report`) {
      take(request, response);
      return true;
    }
    const file = files[path];
    if (file === undefined) return false;
    const [type, text] = file();
    response.writeHead(200, { 'content-type': type, 'cache-control': 'no-store' }).end(text);
    return true;
  };
  const expect: Page['expect'] = (given, to) => {
    options = given;
    listener = to;
  };
  return { ownPages, expect, browser: () => browser };
}

function followScript(): string {
  return stripTypeScriptTypes(readFileSync(new URL('./follow.ts', import.meta.url), 'utf8'));
}

/** Reports are sent one after the other, so that they arrive in their order. */
function htmlOf(options: Omit<FollowOptions, 'url'> | undefined): string {
  return `<!doctype html>
<title>Following</title>
<script src="${PAGE_PATH}/signalr.js"></script>
<script type="module">
let sending = Promise.resolve();
const report = (one) => {
  const send = () => fetch('${PAGE_PATH}/report', { method: 'POST', body: JSON.stringify(one) });
  sending = sending.then(send).catch((error) => console.error(error));
};
const failed = (error) => report({ kind: 'failed', message: String(error) });
addEventListener('unhandledrejection', ({ reason }) => failed(reason));
try {
  const { follow } = await import('${PAGE_PATH}/follow.js');
  const url = new URL('/hubs/register', location.href).href;
  await follow(signalR, { ...${JSON.stringify(options)}, url }, report);
} catch (error) {
  failed(error);
}
</script>
`;
}
