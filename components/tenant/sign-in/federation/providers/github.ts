import { z } from 'zod';
import type { Outbound } from '#kit/outbound/outbound.ts';
import { toAddress, toName, type UpstreamIdentity } from '../upstream/identity.ts';

const profile = z.object({
  id: z.int().positive(),
  login: z.string(),
  name: z.string().nullish(),
});
const emails = z.array(z.object({ email: z.string(), primary: z.boolean(), verified: z.boolean() }));

interface GithubApi {
  readonly door: Outbound;
  readonly profileUrl: string;
  readonly emailsUrl: string;
}

/** The owner of an access token (GitHub REST API: `GET /user`, `GET /user/emails`). @throws when an answer is malformed */
export async function identifyGithub(
  { door, profileUrl, emailsUrl }: GithubApi,
  accessToken: string,
): Promise<UpstreamIdentity> {
  const read = async (url: string): Promise<unknown> => {
    const headers = {
      authorization: `Bearer ${accessToken}`,
      accept: 'application/vnd.github+json',
      'user-agent': 'chancery',
    };
    const { status, body } = await door.send(url, { headers });
    if (status !== 200) throw new Error(`${url} was answered with status ${status}`);
    return JSON.parse(body.toString('utf8'));
  };
  const { id, login, name } = profile.parse(await read(profileUrl));
  const chosen = emails.parse(await read(emailsUrl)).find(({ primary, verified }) => primary && verified);
  const email = toAddress(chosen?.email);
  return {
    subject: String(id),
    email,
    isEmailVerified: email !== undefined,
    displayName: toName(name) ?? toName(login),
    authTimeMs: undefined,
  };
}
