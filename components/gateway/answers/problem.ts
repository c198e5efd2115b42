import type { ServerResponse } from 'node:http';
import { discardBody } from './discard-body.ts';
import { rawHead } from './raw-answer.ts';
import { securityHeaders } from './security-headers.ts';

/** The gateway's own problem answers; code -> status and title. */
export const gatewayProblems = {
  INVALID_REQUEST: { status: 400, title: 'Invalid request' },
  NOT_FOUND: { status: 404, title: 'Not found' },
  METHOD_NOT_ALLOWED: { status: 405, title: 'Method not allowed' },
  REQUEST_TIMEOUT: { status: 408, title: 'Request timeout' },
  PAYLOAD_TOO_LARGE: { status: 413, title: 'Payload too large' },
  UPGRADE_REQUIRED: { status: 426, title: 'Upgrade required' },
  RATE_LIMITED: { status: 429, title: 'Too many requests' },
  HEADERS_TOO_LARGE: { status: 431, title: 'Request header fields too large' },
  INTERNAL_ERROR: { status: 500, title: 'Internal error' },
  BAD_GATEWAY: { status: 502, title: 'Bad gateway' },
  SERVICE_UNAVAILABLE: { status: 503, title: 'Service unavailable' },
  GATEWAY_TIMEOUT: { status: 504, title: 'Gateway timeout' },
} as const;

export type ProblemCode = keyof typeof gatewayProblems;

/** `Retry-After` by code, in seconds. */
const retryAfterSeconds: Readonly<Partial<Record<ProblemCode, string>>> = {
  SERVICE_UNAVAILABLE: '1',
  RATE_LIMITED: '10',
};

interface Problem {
  readonly code: ProblemCode;
  readonly detail: string;
  /** Path without query. */
  readonly path: string;
  readonly traceId: string;
  readonly nowMs: number;
  /** Closes the connection after the answer, because the rest of the request is unwanted. */
  readonly close?: boolean;
  /** `Allow` of a 405. */
  readonly allow?: readonly string[];
}

/** The problem+json text of specification document 1, section 7, with the members of RFC 9457. */
function problemBody(problem: Problem): string {
  const { status, title } = gatewayProblems[problem.code];
  return JSON.stringify({
    type: `urn:platform:error:${problem.code.toLowerCase().replaceAll('_', '-')}`,
    title,
    status,
    detail: problem.detail,
    instance: problem.path,
    error: problem.detail,
    code: problem.code,
    timestamp: new Date(problem.nowMs).toISOString(),
    path: problem.path,
    traceId: problem.traceId,
  });
}

/** Headers of a problem answer, as a flat list. */
function problemHeaders(problem: Problem, body: string): string[] {
  const headers = [
    'content-type',
    'application/problem+json',
    'content-length',
    String(Buffer.byteLength(body)),
    'cache-control',
    'no-store',
    ...securityHeaders,
  ];
  const retryAfter = retryAfterSeconds[problem.code];
  if (retryAfter !== undefined) headers.push('retry-after', retryAfter);
  if (problem.allow !== undefined) headers.push('allow', problem.allow.join(', '));
  const options = problem.close === true ? ['close'] : [];
  if (problem.code === 'UPGRADE_REQUIRED') {
    // RFC 6455 4.2.2 and RFC 9110 15.5.22
    headers.push('sec-websocket-version', '13', 'upgrade', 'websocket');
    options.push('upgrade');
  }
  if (options.length > 0) headers.push('connection', options.join(', '));
  return headers;
}

/** Answers with a problem; closes the connection instead when an answer has already begun. Returns the status. */
export function sendProblem(response: ServerResponse, problem: Problem): number {
  const { status } = gatewayProblems[problem.code];
  if (response.headersSent) {
    response.destroy();
    return status;
  }
  const body = problemBody(problem);
  response.writeHead(status, problemHeaders(problem, body));
  if (response.req.method === 'HEAD') {
    response.end();
  } else if (problem.close === true) {
    response.write(body);
    discardBody(response.req, () => response.end());
  } else {
    response.end(body);
  }
  return status;
}

/** The same answer as raw bytes, the last ones of a connection. */
export function rawProblem(problem: Problem): Buffer {
  const body = problemBody(problem);
  const headers = problemHeaders({ ...problem, close: true }, body);
  return Buffer.concat([rawHead(gatewayProblems[problem.code].status, headers), Buffer.from(body)]);
}
