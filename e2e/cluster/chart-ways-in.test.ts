import { describe, expect, it } from 'vitest';
import { given, hasHelm, nameOf, ofKind, render } from './rendered.ts';

describe.runIf(hasHelm)('what the chart renders for ways in and their pages', () => {
  it('gives the tenant service its mail server and webhook, and opens their ports to it alone', () => {
    const values = [
      ['tenant.mail.existingSecret', 'mail-server'],
      ['tenant.mail.port', '2525'],
      ['tenant.mail.from', 'City <no-reply@city.example>'],
      ['tenant.sms.existingSecret', 'text-messages'],
      ['tenant.outbound.enabled', 'false'],
      ['credential.outbound.enabled', 'false'],
      ['tenant.returnToHosts', '{app.city.example,*.city.example}'],
    ].flatMap(([name, value]) => ['--set', `${name}=${value}`]);
    const rendered = render(...given, ...values);
    const [tenant = ''] = ofKind(rendered, 'Deployment').filter((text) => nameOf(text) === 'service-tenant');
    for (const setting of [
      '{ name: CHANCERY_SMTP_URL_FILE, value: /etc/chancery/mail/url }',
      '{ name: CHANCERY_MAIL_FROM, value: "City <no-reply@city.example>" }',
      '{ name: CHANCERY_SMS_WEBHOOK_FILE, value: /etc/chancery/sms/webhook }',
      '{ name: Auth__ReturnToAllowlist__Hosts, value: "app.city.example,*.city.example" }',
    ]) {
      expect(tenant).toContain(setting);
    }
    const opened = (text: string) => /port: (?:2525|443) \}\]\s*$/m.test(text);
    const policies = ofKind(rendered, 'NetworkPolicy').filter(opened).map(nameOf);
    expect(policies).toEqual(['service-tenant']);
    const [plain = ''] = ofKind(render(...given), 'Deployment').filter(
      (text) => nameOf(text) === 'service-tenant',
    );
    expect(plain).not.toMatch(/SMTP|SMS|MAIL_FROM|ReturnTo/);
    const off = ['tenant', 'credential'].flatMap((name) => ['--set', `${name}.outbound.enabled=false`]);
    const closed = render(...given, ...off);
    expect(ofKind(closed, 'NetworkPolicy').filter(opened)).toEqual([]);
  });

  it('gives the tenant service its ways in by others, and opens their ports to it alone', () => {
    const rendered = render(
      ...given,
      ...[
        ['tenant.passkeys.rpId', 'city.example'],
        ['tenant.passkeys.rpName', 'City'],
        ['tenant.passkeys.origins', '{https://city.example,https://app.city.example}'],
        ['tenant.socialProviders.existingSecret', 'social'],
        ['tenant.breachedPasswords', 'https://passwords.example/range'],
        ['tenant.outbound.allowed', '{https://login.corp.internal:8443,http://idp.corp.internal}'],
        ['credential.outbound.enabled', 'false'],
      ].flatMap(([name, value]) => ['--set', `${name}=${value}`]),
    );
    const [tenant = ''] = ofKind(rendered, 'Deployment').filter((text) => nameOf(text) === 'service-tenant');
    for (const setting of [
      '{ name: CHANCERY_PASSKEY_RP_ID, value: "city.example" }',
      '{ name: CHANCERY_PASSKEY_RP_NAME, value: "City" }',
      '{ name: CHANCERY_PASSKEY_ORIGINS, value: "https://city.example,https://app.city.example" }',
      '{ name: CHANCERY_PASSWORD_BREACH_API, value: "https://passwords.example/range" }',
      '{ name: CHANCERY_SOCIAL_PROVIDERS_FILE, value: /etc/chancery/social/providers }',
      '{ name: CHANCERY_OUTBOUND_ALLOWED, value: "https://login.corp.internal:8443,http://idp.corp.internal" }',
      'secret: { secretName: social,',
    ]) {
      expect(tenant).toContain(setting);
    }
    for (const port of [443, 8443, 80]) {
      const opened = (text: string) =>
        new RegExp(`- ports: \\[\\{ protocol: TCP, port: ${port} \\}\\]\\s*(?:- |$)`, 'm').test(text);
      const policies = ofKind(rendered, 'NetworkPolicy').filter(opened).map(nameOf);
      expect(policies, String(port)).toEqual(['service-tenant']);
    }
  });

  it('gives the credential service what it may ask of others, and opens its ports', () => {
    const values = [
      ['credential.outbound.allowed', '{https://lists.corp.internal:8443}'],
      ['credential.verifierAuthorities.configMap', 'verifiers'],
    ].flatMap(([name, value]) => ['--set', `${name}=${value}`]);
    const rendered = render(...given, ...values);
    const ofCredential = (kind: string) =>
      ofKind(rendered, kind).filter((text) => nameOf(text) === 'service-credential');
    const [credential = ''] = ofCredential('Deployment');
    for (const setting of [
      '{ name: CHANCERY_OUTBOUND_ALLOWED, value: "https://lists.corp.internal:8443" }',
      '{ name: Haip__VerifierAuthorities, value: /etc/chancery/verifiers/ca.crt }',
      'configMap: { name: verifiers',
    ]) {
      expect(credential).toContain(setting);
    }
    const [policy = ''] = ofCredential('NetworkPolicy');
    const lists = '- ports: [{ protocol: TCP, port: 443 }, { protocol: TCP, port: 80 }]';
    for (const ports of [lists, '- ports: [{ protocol: TCP, port: 8443 }]']) expect(policy).toContain(ports);
    const closed = render(...given, '--set', 'credential.outbound.enabled=false');
    expect(ofKind(closed, 'NetworkPolicy').filter((text) => text.includes(lists))).toEqual([]);
  });

  it.each([
    ['https://pages.city.example', 443],
    ['http://pages:3000', 3000],
  ])('gives the gateway the server of pages %s, and opens its port', (origin, port) => {
    const rendered = render(...given, '--set', `gateway.uiUpstream=${origin}`);
    const isGateway = (text: string) => nameOf(text) === 'service-gateway';
    const [gateway = ''] = ofKind(rendered, 'Deployment').filter(isGateway);
    expect(gateway).toContain(`{ name: CHANCERY_UI_UPSTREAM, value: "${origin}" }`);
    const [policy = ''] = ofKind(rendered, 'NetworkPolicy').filter(isGateway);
    expect(policy).toContain(`- ports: [{ protocol: TCP, port: ${port} }]`);
    expect(render(...given)).not.toContain('CHANCERY_UI_UPSTREAM');
  });
});
