#![allow(clippy::unwrap_used, reason = "a test may stop")]

use tokio::net::TcpListener;

use super::*;

#[test]
fn families_take_turns_beginning_with_the_resolvers_choice() {
    let address = |text: &str| text.parse::<SocketAddr>().unwrap();
    let [a, b, c, d] = ["[::1]:1", "[::2]:1", "[::3]:1", "192.0.2.1:1"].map(address);
    assert_eq!(interleave(vec![a, b, c, d]), [a, d, b, c]);
    assert_eq!(interleave(vec![d, a, b]), [d, a, b]);
    assert_eq!(interleave(Vec::new()), []);
}

#[test]
fn a_proxy_is_read_from_a_url_and_its_password_is_not_shown() {
    let proxy = HttpProxy::new("http://me:p%40ss@proxy.example:3128").unwrap();
    assert_eq!(proxy.address, "proxy.example:3128");
    assert_eq!(proxy.authorization.as_deref(), Some("Basic bWU6cEBzcw=="));
    assert!(!format!("{proxy:?}").contains("bWU6"));
    assert_eq!(HttpProxy::new("http://proxy.example").unwrap().address, "proxy.example:80");
    for url in ["", "proxy.example:3128", "https://proxy.example", "socks5://proxy.example:1080"] {
        assert!(HttpProxy::new(url).is_err(), "{url}");
    }
}

/// A name with a dead address first: the live one is reached after a moment.
#[tokio::test]
async fn an_address_that_leads_nowhere_costs_a_moment_only() {
    let live = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // A listener whose queue is full takes no connection and refuses none.
    let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    full.bind(&"127.0.0.1:0".parse::<SocketAddr>().unwrap().into()).unwrap();
    full.listen(0).unwrap();
    let dead = full.local_addr().unwrap().as_socket().unwrap();
    let _fill: Vec<_> = (0..4).map(|_| tokio::spawn(TcpStream::connect(dead))).collect();
    sleep(Duration::from_millis(100)).await;
    let started = tokio::time::Instant::now();
    let stream = race(vec![dead, live.local_addr().unwrap()]).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), live.local_addr().unwrap());
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_proxy_that_refuses_is_named_with_its_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for answer in ["HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "HTTP/1.1 200 OK\r\n\r\nTLS"] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let read = stream.read(&mut request).await.unwrap();
            assert!(request[..read].starts_with(b"CONNECT gateway.example:443 HTTP/1.1\r\n"));
            stream.write_all(answer.as_bytes()).await.unwrap();
            sleep(Duration::from_millis(200)).await;
        }
    });
    let proxy = HttpProxy::new(&format!("http://{address}")).unwrap();
    let error = through(&proxy, "gateway.example:443").await.unwrap_err().to_string();
    assert!(error.contains("407") && error.contains(&address.to_string()), "{error}");
    let mut stream = through(&proxy, "gateway.example:443").await.unwrap();
    let mut after = [0; 3];
    stream.read_exact(&mut after).await.unwrap();
    assert_eq!(&after, b"TLS", "what follows the answer is not the proxy's");
}
