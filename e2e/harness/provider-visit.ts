/** Follows redirects with a jar of cookies, as a browser does, until one leaves the origin. @returns where it leads */
export async function visitProvider(url: string, origin: string): Promise<string> {
  const jar = new Map<string, string>();
  let next = url;
  for (let steps = 0; next.startsWith(origin) && steps < 10; steps++) {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join('; ');
    const answer = await fetch(next, { redirect: 'manual', headers: { cookie } });
    await answer.body?.cancel();
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === '') jar.delete(name);
      else jar.set(name, value);
    }
    next = new URL(answer.headers.get('location') ?? '', next).href;
  }
  return next;
}
