import { z } from 'zod';
import { readableLine } from '#core/encoding/readable.ts';
import { type App, callerOf } from '#kit/http/http.ts';
import { doneSchema, noStore } from '../requests/answers.ts';
import { originOf } from '../requests/origin.ts';
import { tier } from '../requests/tier.ts';
import { presentTokens, tokenSchema } from '../tokens/sessions/token-response.ts';
import { presentCaller } from './me.ts';
import { type SignInDeps, signIn } from './sign-in.ts';
import { type SignOutDeps, signOut } from './sign-out.ts';

const loginSchema = z.object({
  email: readableLine.min(1).max(254),
  password: z.string().min(1).max(1024),
  organizationSubdomain: z.string().max(64).optional(),
  tier: tier.optional(),
  returnTo: z.string().max(2048).optional(),
});

const meSchema = z.object({
  userId: z.string(),
  email: z.string().optional(),
  displayName: z.string().optional(),
  organizationId: z.string().optional(),
  organizationName: z.string().optional(),
  roles: z.array(z.string()),
  tokenType: z.enum(['user', 'service']),
  scopes: z.array(z.string()),
  authMethod: z.string().optional(),
  platformUserId: z.string().optional(),
  tier: z.string(),
  walletAddress: z.string().optional(),
});

export interface SignInRouteDeps {
  readonly signIn: SignInDeps;
  readonly signOut: SignOutDeps;
}

export function mountSignIn(app: App, deps: SignInRouteDeps): void {
  const tags = ['Sign-in'];
  app.post(
    '/api/auth/login',
    {
      config: { policy: 'Anonymous', rateLimit: 'Authentication' },
      schema: { operationId: 'signInUser', tags, body: loginSchema, response: { 200: tokenSchema } },
    },
    async (request, reply) => {
      const tokens = await signIn(deps.signIn, { ...request.body, origin: originOf(request) });
      return noStore(reply).send(presentTokens(tokens));
    },
  );
  app.get(
    '/api/auth/me',
    {
      config: { policy: 'RequireAuthenticated' },
      schema: { operationId: 'getCurrentUser', tags, response: { 200: meSchema } },
    },
    async (request, reply) => noStore(reply).send(presentCaller(callerOf(request))),
  );
  app.post(
    '/api/auth/logout',
    {
      config: { policy: 'RequireAuthenticated' },
      schema: { operationId: 'signOutUser', tags, response: { 200: doneSchema } },
    },
    async (request) => {
      await signOut(deps.signOut, callerOf(request), originOf(request));
      return { success: true, message: 'Signed out.' };
    },
  );
}
