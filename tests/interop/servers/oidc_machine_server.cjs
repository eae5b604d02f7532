// npm `oidc-provider` for programs that nobody signs in for, and an MCP server that it guards, each on a port of its own
// of 127.0.0.1.
//
// `oidc_machine_server.cjs [--settings JSON]`, with NODE_PATH on the folder of its packages; it prints the URL of the MCP
// server when it listens. Settings: `clients` (as the package has them); `nonces` (both want nonces in proofs);
// `bound` (the MCP server takes bound tokens alone). Proofs are verified by the package at the token endpoint, with
// replays, and by `jose` at the MCP server. Beside that: `GET /counts`, with `events`: how often what happened.
"use strict";

const crypto = require("node:crypto");
const http = require("node:http");
const { EmbeddedJWK, calculateJwkThumbprint, createLocalJWKSet, jwtVerify } = require("jose");
const { Provider } = require("oidc-provider");
const sdk = require("@modelcontextprotocol/server");
const { toNodeHandler } = require("@modelcontextprotocol/node");

const given = process.argv.slice(2);
const settings = {
    clients: [],
    nonces: false,
    bound: false,
    ...(given.includes("--settings") ? JSON.parse(given[given.indexOf("--settings") + 1]) : {}),
};
const METADATA = "/.well-known/oauth-protected-resource/mcp";
const NONCE = "nonce-of-the-mcp-server";
const RECENT = 60;

const events = {};
const count = (event) => (events[event] = (events[event] ?? 0) + 1);
const proofs = new Set();

function providerOf(issuer, resource) {
    const provider = new Provider(issuer, {
        clients: settings.clients,
        clientAuthMethods: ["client_secret_basic", "client_secret_post", "private_key_jwt"],
        scopes: ["read"],
        enabledJWA: { clientAuthSigningAlgValues: ["ES256", "RS256", "EdDSA", "Ed25519"] },
        features: {
            devInteractions: { enabled: false },
            clientCredentials: { enabled: true },
            dPoP: {
                enabled: true,
                nonceSecret: settings.nonces ? crypto.randomBytes(32) : undefined,
                requireNonce: () => settings.nonces,
            },
            resourceIndicators: {
                enabled: true,
                getResourceServerInfo(ctx, indicator) {
                    if (indicator !== resource) throw new Error(`no such resource: ${indicator}`);
                    return { scope: "read", audience: resource, accessTokenTTL: 3600, accessTokenFormat: "jwt" };
                },
            },
        },
    });
    provider.on("grant.success", (ctx) => count(ctx.oidc.params.grant_type));
    provider.on("grant.error", (ctx, error) => {
        count(`error: ${error.error}`);
        console.error(error.error_description ?? error.stack, error.error_detail ?? "");
    });
    provider.on("server_error", (ctx, error) => console.error(error.stack));
    return provider;
}

async function checkProof(req, url, token, thumbprint) {
    const { payload, protectedHeader } = await jwtVerify(req.headers.dpop, EmbeddedJWK, {
        algorithms: ["ES256"],
        typ: "dpop+jwt",
    });
    const right =
        payload.htm === req.method &&
        payload.htu === url &&
        Math.abs(Date.now() / 1000 - payload.iat) < RECENT &&
        payload.ath === crypto.createHash("sha256").update(token).digest("base64url") &&
        !proofs.has(payload.jti) &&
        (await calculateJwkThumbprint(protectedHeader.jwk)) === thumbprint;
    if (!right) throw new Error("invalid_dpop_proof");
    proofs.add(payload.jti);
    if (settings.nonces && payload.nonce !== NONCE) throw new Error("use_dpop_nonce");
}

async function claimsOf(req, keys, issuer, resource) {
    const [scheme, token] = (req.headers.authorization ?? "").split(" ");
    const { payload } = await jwtVerify(token ?? "", keys, { issuer, audience: resource, typ: "at+jwt" });
    const thumbprint = payload.cnf?.jkt;
    if ((thumbprint !== undefined || settings.bound) !== (scheme === "DPoP")) throw new Error("invalid_token");
    if (thumbprint !== undefined) await checkProof(req, resource, token, thumbprint);
    return payload;
}

function build(claims) {
    const server = new sdk.McpServer({ name: "oidc-machine-peer", version: "1" });
    server.registerTool("read", { description: "Says who asks." }, async () => ({
        content: [{ type: "text", text: `${claims.client_id} for ${claims.scope}` }],
    }));
    return server;
}

function answer(res, body) {
    res.writeHead(200, { "content-type": "application/json" });
    res.end(JSON.stringify(body));
}

async function listen(server) {
    await new Promise((done) => server.listen(0, "127.0.0.1", done));
    return `http://127.0.0.1:${server.address().port}`;
}

async function main() {
    const authorization = http.createServer();
    const resources = http.createServer();
    const issuer = await listen(authorization);
    const origin = await listen(resources);
    const resource = origin + "/mcp";
    const provider = providerOf(issuer, resource);
    authorization.on("request", provider.callback());
    const keys = createLocalJWKSet(await (await fetch(issuer + "/jwks")).json());

    resources.on("request", async (req, res) => {
        if (req.url === METADATA) {
            return answer(res, {
                resource,
                authorization_servers: [issuer],
                scopes_supported: ["read"],
                dpop_bound_access_tokens_required: settings.bound,
            });
        }
        if (req.url === "/counts") return answer(res, { events });
        let claims;
        try {
            claims = await claimsOf(req, keys, issuer, resource);
        } catch (error) {
            const code = ["use_dpop_nonce", "invalid_dpop_proof"].includes(error.message) ? error.message : "invalid_token";
            count(`refused: ${code}`);
            const scheme = settings.bound ? "DPoP" : "Bearer";
            res.writeHead(401, {
                "www-authenticate": `${scheme} error="${code}", resource_metadata="${origin + METADATA}"`,
                ...(settings.nonces ? { "dpop-nonce": NONCE } : {}),
            });
            return res.end();
        }
        const chunks = [];
        for await (const chunk of req) chunks.push(chunk);
        const body = chunks.length ? JSON.parse(Buffer.concat(chunks).toString()) : undefined;
        const handler = sdk.createMcpHandler(() => build(claims), { legacy: "stateless", responseMode: "json" });
        await toNodeHandler(handler)(req, res, body);
    });
    console.log(resource);
}

process.on("SIGTERM", () => process.exit(0));
main();
