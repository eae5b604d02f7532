// npm `oidc-provider` as authorization server, and an MCP server that it guards, each on a port of its own of 127.0.0.1.
//
// `oidc_server.cjs [--settings JSON]`, with NODE_PATH on the folder of its packages; it prints the URL of the MCP server
// when it listens. Settings: `accessSeconds`; `registration` (clients register themselves); `authMethods`;
// `clients` (registered by hand); `documents` (clients may be metadata documents); `namesScopes` (the authorization
// server's metadata names those of the MCP server); `path` (of the authorization server). Access tokens are JWTs for that one resource, refresh tokens are
// good for one use, PKCE is required, and the pages are those that the package has for development.
//
// The MCP server wants the scope `read`, and `write` for the tool of that name. Beside it: `GET /counts`, with `events`
// (how often what happened; `error: ...` is an error of the authorization server); `POST /control/expire` (the access
// tokens are no longer good), `/control/revoke` (nor the refresh tokens).
"use strict";

const http = require("node:http");
const { createLocalJWKSet, jwtVerify } = require("jose");
const { Provider } = require("oidc-provider");
const sdk = require("@modelcontextprotocol/server");
const { toNodeHandler } = require("@modelcontextprotocol/node");

const given = process.argv.slice(2);
const settings = {
    accessSeconds: 3600,
    registration: true,
    authMethods: ["none", "client_secret_basic", "client_secret_post"],
    clients: [],
    documents: false,
    namesScopes: true,
    path: "",
    ...(given.includes("--settings") ? JSON.parse(given[given.indexOf("--settings") + 1]) : {}),
};
const SCOPES = ["read", "write"];
const METADATA = "/.well-known/oauth-protected-resource/mcp";

const events = {};
const count = (event) => (events[event] = (events[event] ?? 0) + 1);
const issued = new Set(); // identifiers of access tokens
const refused = new Set(); // of those that are no longer good
const grants = new Set();

function providerOf(issuer, resource) {
    const provider = new Provider(issuer, {
        clients: settings.clients,
        clientAuthMethods: settings.authMethods,
        scopes: ["openid", "offline_access", ...(settings.namesScopes ? SCOPES : [])],
        pkce: { required: () => true },
        rotateRefreshToken: true,
        // without the package's dispatcher, which refuses this machine, where the metadata documents of tests are
        fetch: (url, { dispatcher, ...options }) => fetch(url, options),
        features: {
            devInteractions: { enabled: true },
            registration: { enabled: settings.registration },
            revocation: { enabled: true },
            clientIdMetadataDocument: { enabled: settings.documents, ack: "draft-02" },
            resourceIndicators: {
                enabled: true,
                getResourceServerInfo(ctx, indicator) {
                    if (indicator !== resource) throw new Error(`no such resource: ${indicator}`);
                    return {
                        scope: SCOPES.join(" "),
                        audience: resource,
                        accessTokenTTL: settings.accessSeconds,
                        accessTokenFormat: "jwt",
                        jwt: { sign: { alg: "RS256" } },
                    };
                },
            },
        },
        ttl: { Session: 3600, Interaction: 600, Grant: 3600, RefreshToken: 3600, AuthorizationCode: 60 },
    });
    provider.on("registration_create.success", () => count("registered"));
    provider.on("interaction.started", (ctx, prompt) => count(`asked for ${prompt.name}`));
    provider.on("access_token.issued", (token) => issued.add(token.jti) && grants.add(token.grantId));
    provider.on("grant.success", (ctx) => count(ctx.oidc.params.grant_type));
    provider.on("refresh_token.destroyed", () => count("refresh token destroyed"));
    provider.on("grant.revoked", () => count("grant revoked"));
    for (const place of ["server", "authorization", "grant", "registration_create", "revocation"]) {
        provider.on(place === "server" ? "server_error" : `${place}.error`, (ctx, error) => {
            count(`error: ${error.error ?? "server_error"}`);
            console.error(place, error.error_description ?? error.stack, error.error_detail ?? "", error.cause ?? "");
        });
    }
    return provider;
}

function build(claims) {
    const server = new sdk.McpServer({ name: "oidc-peer", version: "1" });
    for (const name of SCOPES) {
        server.registerTool(name, { description: `Wants the scope ${name}.` }, async () => ({
            content: [{ type: "text", text: `${claims.sub} for ${claims.scope}` }],
        }));
    }
    return server;
}

async function claimsOf(provider, keys, issuer, resource, req) {
    const [scheme, token] = (req.headers.authorization ?? "").split(" ");
    if (scheme !== "Bearer") return undefined;
    try {
        const { payload } = await jwtVerify(token, keys, { issuer, audience: resource, typ: "at+jwt" });
        return refused.has(payload.jti) ? undefined : payload;
    } catch (error) {
        console.error("token refused", error.message);
        return undefined;
    }
}

function refuse(res, status, parameters) {
    count(`refused with ${status}`);
    const written = Object.entries(parameters).map(([name, value]) => `${name}="${value}"`);
    res.writeHead(status, { "www-authenticate": `Bearer ${written.join(", ")}` });
    res.end();
}

function answer(res, body) {
    res.writeHead(200, { "content-type": "application/json" });
    res.end(JSON.stringify(body));
}

async function read(req) {
    const chunks = [];
    for await (const chunk of req) chunks.push(chunk);
    return chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
}

async function control(provider, what) {
    for (const jti of issued) refused.add(jti);
    if (what !== "revoke") return;
    for (const grant of grants) {
        await provider.RefreshToken.revokeByGrantId(grant);
        await (await provider.Grant.find(grant))?.destroy();
    }
}

async function listen(server) {
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${server.address().port}`;
}

async function main() {
    const authorization = http.createServer();
    const resources = http.createServer();
    const issuer = (await listen(authorization)) + settings.path;
    const origin = await listen(resources);
    const resource = origin + "/mcp";
    const provider = providerOf(issuer, resource);
    const serve = provider.callback();
    authorization.on("request", (req, res) => {
        if (!req.url.startsWith(settings.path + "/")) return res.writeHead(404).end();
        req.originalUrl = req.url; // from which the package learns the path
        req.url = req.url.slice(settings.path.length);
        return serve(req, res);
    });
    const keys = createLocalJWKSet(await (await fetch(issuer + "/jwks")).json());

    resources.on("request", async (req, res) => {
        if (req.url === METADATA) {
            return answer(res, { resource, authorization_servers: [issuer], scopes_supported: ["read"] });
        }
        if (req.url === "/counts") return answer(res, { events });
        if (req.url.startsWith("/control/")) {
            await control(provider, req.url.slice("/control/".length));
            return answer(res, {});
        }
        const where = { resource_metadata: origin + METADATA };
        const claims = await claimsOf(provider, keys, issuer, resource, req);
        if (claims === undefined) return refuse(res, 401, { error: "invalid_token", scope: "read", ...where });
        const body = await read(req);
        const wanted = body?.method === "tools/call" && body.params.name === "write" ? SCOPES : ["read"];
        const has = (claims.scope ?? "").split(" ");
        if (!wanted.every((scope) => has.includes(scope))) {
            return refuse(res, 403, { error: "insufficient_scope", scope: wanted.join(" "), ...where });
        }
        const handler = sdk.createMcpHandler(() => build(claims), { legacy: "stateless", responseMode: "json" });
        await toNodeHandler(handler)(req, res, body);
    });
    console.log(resource);
}

process.on("SIGTERM", () => process.exit(0));
main();
