import { z } from 'zod';
import { type App, addRoute, answer, json, media } from '#kit/http/http.ts';
import { refusal, refusals } from '../errors.ts';
import { judgeDestination, type ReturnToHosts } from '../requests/return-to.ts';
import { PAGE_FILES, PAGES, type PageFile } from './files.ts';

export interface PageDeps {
  readonly baseUrl: string;
  readonly returnToHosts: ReturnToHosts;
}

const tagName = 'Pages';

/** Pages run their own scripts and styles and call this origin; nothing else is loaded, framed or posted to. */
const contentSecurityPolicy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const pageHeaders = {
  'content-security-policy': contentSecurityPolicy,
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
} as const;

const page = {
  method: 'GET',
  tag: tagName,
  policy: 'Anonymous',
  rateLimit: 'none',
  refusals: [],
  hidden: true,
} as const;

/** The pages of sign-in and account: static HTML, and one script each beside what they share. */
export function mountPages(app: App, deps: PageDeps): void {
  for (const [path, file] of Object.entries(PAGES)) mountPage(app, path, file);
  mountPage(app, '/app', PAGES['/app/']);
  mountPage(app, '/wallet', PAGES['/wallet/']);
  mountFiles(app);
  mountReturnTo(app, deps);
}

function mountPage(app: App, path: string, file: PageFile): void {
  addRoute(app, {
    ...page,
    path,
    operationId: `getPage${path}`,
    summary: 'A page',
    answers: { 200: media(file.mediaType, 'The page.'), 304: media('text/plain', 'Unchanged.') },
    handle: ({ request }) => send(file, request.headers['if-none-match']),
  });
}

function mountFiles(app: App): void {
  addRoute(app, {
    ...page,
    path: '/auth/files/:name',
    operationId: 'getPageFile',
    summary: 'A script or style of the pages',
    params: z.object({ name: z.string() }),
    answers: {
      200: media('text/javascript', 'The file.', { 'text/css': z.string() }),
      304: media('text/plain', 'Unchanged.'),
    },
    refusals: refusals('PAGE_FILE_NOT_FOUND'),
    handle: ({ params, request }) => {
      const file = PAGE_FILES.get(params.name);
      if (file === undefined) throw refusal('PAGE_FILE_NOT_FOUND');
      return send(file, request.headers['if-none-match']);
    },
  });
}

function send({ text, mediaType, tag }: PageFile, known: string | undefined) {
  const headers = { ...pageHeaders, etag: tag, 'content-type': `${mediaType}; charset=utf-8` };
  return known === tag ? answer(304, '', headers) : answer(200, text, headers);
}

function mountReturnTo(app: App, deps: PageDeps): void {
  addRoute(app, {
    method: 'GET',
    path: '/api/auth/return-to',
    operationId: 'getReturnAddress',
    tag: tagName,
    summary: 'Whether a sign-in may lead to an address',
    description: 'Paths of this origin, and hosts of the setting `Auth__ReturnToAllowlist__Hosts`.',
    policy: 'Anonymous',
    rateLimit: 'Api',
    query: z.object({ url: z.string().min(1).max(2048) }),
    answers: {
      200: json(
        'The judgement.',
        z.object({
          allowed: z.boolean(),
          url: z
            .string()
            .optional()
            .describe('The address to open: a path, or the whole address of another host.'),
          foreign: z.boolean().optional().describe('The address is of another host.'),
        }),
      ),
    },
    refusals: [],
    noStore: true,
    handle: ({ query }) => {
      const found = judgeDestination(query.url, { baseUrl: deps.baseUrl, hosts: deps.returnToHosts });
      return found === undefined
        ? { allowed: false }
        : { allowed: true, url: found.url, foreign: found.isForeign };
    },
  });
}
