//! Paths of cgroups in all forms that appear in documentation, tests and issues of these projects.

use super::{Origin, Runtime};

use Runtime::{Containerd, CriO, Docker, Lxc, Nspawn, Podman};

/// The origin of a path, the path, and the runtime, container and pod that it names.
type Path = (
    &'static str,
    &'static str,
    Option<Runtime>,
    Option<&'static str>,
    Option<&'static str>,
);

#[rustfmt::skip]
const PATHS: &[Path] = &[
    // Docker
    ("neuvector/neuvector cgroup_test.go",
     "/system.slice/docker-9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d.scope",
     Some(Docker), Some("9ec39b91f3d70e1beff50a308f77067065ea6be0d91a3378375056cd4422cf3d"), None),
    ("neuvector/neuvector cgroup_test.go, Debian",
     "/4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970",
     None, Some("4f797c539e6c745de61a93ca3ff892358ecbcaccd8414d5db545c38428142970"), None),
    ("netdata/netdata#13470",
     "/docker/046c7a5b5bf78ee0f178688bbfb31642f64af25380e98b0cee1966533c1b8df5",
     Some(Docker), Some("046c7a5b5bf78ee0f178688bbfb31642f64af25380e98b0cee1966533c1b8df5"), None),
    ("moby/moby#45378, Docker in a pod of CRI-O",
     "/docker/9207737cd20ff309d023da579d810f84ffb7d9bcdebb4b527ba26d14160f1bf8",
     Some(Docker), Some("9207737cd20ff309d023da579d810f84ffb7d9bcdebb4b527ba26d14160f1bf8"), None),
    ("kubernetes/kubernetes#18202, deleted",
     "/docker/81950eac55062e5d8e7b5567d1036e4b146dfe212bdc9263c97347e6ce86b904 (deleted)",
     Some(Docker), Some("81950eac55062e5d8e7b5567d1036e4b146dfe212bdc9263c97347e6ce86b904"), None),
    ("jpetazzo/dind#87, with whole ids",
     "/system.slice/docker-611a8d133d2c636e777745e4dbb1d5866a068fe0f6cc87033e52fe139fca5ba1.scope/docker/8c1e75bb325eb9c64571326952a6507132f1fc7eba7cd5b694422abe39fc7ed8",
     Some(Docker), Some("611a8d133d2c636e777745e4dbb1d5866a068fe0f6cc87033e52fe139fca5ba1"), None),
    ("moby/moby hack/dind, which moves the outer processes",
     "/docker/34a267a4bb8fda59fdbb1870af4cba105b4fad5f0bcfa8f9d0018cf74eb8a64b/init",
     Some(Docker), Some("34a267a4bb8fda59fdbb1870af4cba105b4fad5f0bcfa8f9d0018cf74eb8a64b"), None),
    ("d2iq-archive/kubernetes-mesos#565",
     "/system.slice/docker.service", None, None, None),
    // Docker in Kubernetes
    ("kontena/pharos-cluster#440",
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod9692aa0e_748e_11e8_8dfa_76d458035df6.slice/docker-abddff03dfd7710c79a750ce3e730365cbb2c8247a974170c1062683bc3e9152.scope",
     Some(Docker), Some("abddff03dfd7710c79a750ce3e730365cbb2c8247a974170c1062683bc3e9152"), Some("9692aa0e-748e-11e8-8dfa-76d458035df6")),
    ("cri-o/cri-o#842, cgroupfs",
     "/kubepods/burstable/pod941dc160-92df-11e7-b27e-507b9d4141fa/2b4d747eae5ed34775c069d913c81833b67a0148e731a36535c9f3b97ebfb87f",
     None, Some("2b4d747eae5ed34775c069d913c81833b67a0148e731a36535c9f3b97ebfb87f"), Some("941dc160-92df-11e7-b27e-507b9d4141fa")),
    ("spiffe/spire k8s_test.go, a UID with dashes in a slice",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod2c48913c-b29f-11e7-9350-020968147796.slice/docker-9bca8d63d5fa610783847915bcff0ecac1273e5b4bed3f6fa1b07350e0135961.scope",
     Some(Docker), Some("9bca8d63d5fa610783847915bcff0ecac1273e5b4bed3f6fa1b07350e0135961"), Some("2c48913c-b29f-11e7-9350-020968147796")),
    ("spiffe/spire k8s_test.go, Docker for desktop",
     "/kubepods/kubepods/besteffort/pod6bd2a4d3-a55a-4450-b6fd-2a7ecc72c904/a55d9ac3b312d8a2627824b6d6dd8af66fbec439bf4e0ec22d6d9945ad337a38",
     None, Some("a55d9ac3b312d8a2627824b6d6dd8af66fbec439bf4e0ec22d6d9945ad337a38"), Some("6bd2a4d3-a55a-4450-b6fd-2a7ecc72c904")),
    // containerd
    ("DeterminateSystems/nix-installer-action#140",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podbe2cead1_f604_40bd_a52d_05f47d1ae7ef.slice/cri-containerd-c3bff63004020bec1fc8ca3e517cabf95535ef60c5a4a19b146753a714c92ce2.scope",
     Some(Containerd), Some("c3bff63004020bec1fc8ca3e517cabf95535ef60c5a4a19b146753a714c92ce2"), Some("be2cead1-f604-40bd-a52d-05f47d1ae7ef")),
    ("open-telemetry/opentelemetry-java#4507",
     "/system.slice/containerd.service/kubepods-besteffort-pod0125ec2f_b64a_4868_8f5b_94b56cbab864.slice:cri-containerd:ee4b20e90ac7f42a10bd004d05646b13d8ab5e2c5e7cbc01abf8006bac016459",
     Some(Containerd), Some("ee4b20e90ac7f42a10bd004d05646b13d8ab5e2c5e7cbc01abf8006bac016459"), Some("0125ec2f-b64a-4868-8f5b-94b56cbab864")),
    ("spiffe/spire k8s_test.go, at the root",
     "/kubepods-besteffort-pod72f7f152_440c_66ac_9084_e0fc1d8a910c.slice:cri-containerd:b2a102854b4969b2ce98dc329c86b4fb2b06e4ad2cc8da9d8a7578c9cd2004a2",
     Some(Containerd), Some("b2a102854b4969b2ce98dc329c86b4fb2b06e4ad2cc8da9d8a7578c9cd2004a2"), Some("72f7f152-440c-66ac-9084-e0fc1d8a910c")),
    ("opentelemetry-java-instrumentation, a guaranteed pod",
     "/system.slice/containerd.service/kubepods-pod87a18a64_b74a_454a_b10b_a4a36059d0a3.slice:cri-containerd:05c48c82caff3be3d7f1e896981dd410e81487538936914f32b624d168de9db0",
     Some(Containerd), Some("05c48c82caff3be3d7f1e896981dd410e81487538936914f32b624d168de9db0"), Some("87a18a64-b74a-454a-b10b-a4a36059d0a3")),
    ("Qard/container-info",
     "/kubepods/besteffort/pod74c13223-5a00-11e9-b385-42010a80018d/34dc0b5e626f2c5c4c5170e34b10e7654ce36f0fcd532739f4445baabea03376",
     None, Some("34dc0b5e626f2c5c4c5170e34b10e7654ce36f0fcd532739f4445baabea03376"), Some("74c13223-5a00-11e9-b385-42010a80018d")),
    ("k3s-io/k3s#3005, rootless",
     "/user.slice/user-1001.slice/user@1001.service/k3s-rootless.service/kubepods/podd0eb6921-c81a-4214-b36c-d3b9bb212fac/671b393f08437d7e89e234d9d395aecef155104c7c241f5701844360ffebacac",
     None, Some("671b393f08437d7e89e234d9d395aecef155104c7c241f5701844360ffebacac"), Some("d0eb6921-c81a-4214-b36c-d3b9bb212fac")),
    ("containerd/nerdctl, systemd",
     "/system.slice/nerdctl-28b29b54a96c2523f0240e1cff00365e2f67d6e39103742cfa0321657466756e.scope",
     Some(Containerd), Some("28b29b54a96c2523f0240e1cff00365e2f67d6e39103742cfa0321657466756e"), None),
    ("containerd/nerdctl, cgroupfs: its namespace",
     "/default/368b9cfa19de0a0be5eb1e1e9a892aacd82d74be4ef337fb7c288538b51e5192",
     Some(Containerd), Some("368b9cfa19de0a0be5eb1e1e9a892aacd82d74be4ef337fb7c288538b51e5192"), None),
    ("kata-containers/kata-containers",
     "/kubepods/besteffort/pod1b2f0c4e-7e39-4a9c-8f1d-0a9b8c7d6e5f/kata_41ebb90fa201393b1c686f53533c8dcc803e582a42e7d9d962da2652550e32c4",
     None, Some("41ebb90fa201393b1c686f53533c8dcc803e582a42e7d9d962da2652550e32c4"), Some("1b2f0c4e-7e39-4a9c-8f1d-0a9b8c7d6e5f")),
    // CRI-O
    ("moby/moby#45378",
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod79227834_afc5_4f67_bf05_594a0d4d36bb.slice/crio-b8733da86dee2260690fa0405587ed3beb9d3dca01f39297008529b4a8654743.scope",
     Some(CriO), Some("b8733da86dee2260690fa0405587ed3beb9d3dca01f39297008529b4a8654743"), Some("79227834-afc5-4f67-bf05-594a0d4d36bb")),
    ("opencontainers/runc#4620, with crun's folder",
     "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-poda5c1f8d5_1919_434d_add7_4afaafdaef89.slice/crio-5eed917563583925ffdbd40a64efb2aaffe58638e57add8becaf460fe74f5b1c.scope/container",
     Some(CriO), Some("5eed917563583925ffdbd40a64efb2aaffe58638e57add8becaf460fe74f5b1c"), Some("a5c1f8d5-1919-434d-add7-4afaafdaef89")),
    ("cri-o/cri-o#3259, a pod from a file of the kubelet",
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod0fb386ed7a9f3e4462d5182de8ccaa2b.slice/crio-31b710e9b2340e9f18fbd3a14b19a44e76a4192e668239e5cfd9597681eed9bc.scope",
     Some(CriO), Some("31b710e9b2340e9f18fbd3a14b19a44e76a4192e668239e5cfd9597681eed9bc"), Some("0fb386ed7a9f3e4462d5182de8ccaa2b")),
    ("cri-o/cri-o#10074, cgroupfs",
     "/init/kubepods/burstable/pod9def17ab-bcb6-49d4-8c1a-a1e6a760699d/crio-9c48382024fe9fc9410c7a067803913f67d2f2efaad8dc62b7f0bfbd7ff2e45c",
     Some(CriO), Some("9c48382024fe9fc9410c7a067803913f67d2f2efaad8dc62b7f0bfbd7ff2e45c"), Some("9def17ab-bcb6-49d4-8c1a-a1e6a760699d")),
    ("openshift/machine-config-operator#1296, conmon in the pod",
     "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod79227834_afc5_4f67_bf05_594a0d4d36bb.slice/crio-conmon-b8733da86dee2260690fa0405587ed3beb9d3dca01f39297008529b4a8654743.scope",
     None, None, Some("79227834-afc5-4f67-bf05-594a0d4d36bb")),
    ("cri-o/cri-o#8904, conmon of the system",
     "/system.slice/crio-conmon-0644511bc2734f5ff9f9532fdecddb9f1b92597fe269168b137ada040c3a3118.scope", None, None, None),
    ("cri-o/cri-o runtime_oci_linux.go, conmon with cgroupfs",
     "/kubepods/besteffort/pod9def17ab-bcb6-49d4-8c1a-a1e6a760699d/crio-conmon-9c48382024fe9fc9410c7a067803913f67d2f2efaad8dc62b7f0bfbd7ff2e45c",
     None, None, Some("9def17ab-bcb6-49d4-8c1a-a1e6a760699d")),
    // Podman
    ("podman-container-tools/podman#20423",
     "/user.slice/user-0.slice/user@0.service/machine.slice/libpod-cf21d19260ace8544fe8b769fc2638bf2c0873dfbfff0b6253f0569b26a1d5eb.scope/container",
     Some(Podman), Some("cf21d19260ace8544fe8b769fc2638bf2c0873dfbfff0b6253f0569b26a1d5eb"), None),
    ("podman-container-tools/podman#10602, systemd in the container",
     "/machine.slice/libpod-2521e906f0a0c758c3a7dc4fd68c197e32e96abb4b36807d0b0ede6d014a7c24.scope/init.scope",
     Some(Podman), Some("2521e906f0a0c758c3a7dc4fd68c197e32e96abb4b36807d0b0ede6d014a7c24"), None),
    ("podman-container-tools/podman#13673, a unit of its own",
     "/srv.slice/container-homeassistant.service/libpod-payload-c4e8e0d642078c90dde4a8a65883a7c0bee26f751d7c6a3096dc322519c658d3",
     Some(Podman), Some("c4e8e0d642078c90dde4a8a65883a7c0bee26f751d7c6a3096dc322519c658d3"), None),
    ("podman-container-tools/podman#13673, conmon beside it",
     "/srv.slice/container-homeassistant.service/runtime", None, None, None),
    ("podman-container-tools/podman#13673, in a pod",
     "/machine.slice/machine-libpod_pod_ddf44d54b520f0b4469fcd01c3155ca49e6911dc2175471eb3a7b789187a7a89.slice/libpod-1dadda571b14eefb3158a15d0fff7e0089f9dd92f922679ed0116cccdfe8bb0f.scope/container",
     Some(Podman), Some("1dadda571b14eefb3158a15d0fff7e0089f9dd92f922679ed0116cccdfe8bb0f"), None),
    ("falcosecurity/libs#1613",
     "/machine.slice/libpod-conmon-a2bc7b153f034b17f358cde43a7f8c7475147e8a0d1b2573c26473244ec44ce4.scope", None, None, None),
    ("podman-container-tools/podman#826, cgroupfs",
     "/libpod_parent/libpod-a2bc7b153f034b17f358cde43a7f8c7475147e8a0d1b2573c26473244ec44ce4/ctr",
     Some(Podman), Some("a2bc7b153f034b17f358cde43a7f8c7475147e8a0d1b2573c26473244ec44ce4"), None),
    ("podman-container-tools/podman#826, conmon",
     "/libpod_parent/libpod-a2bc7b153f034b17f358cde43a7f8c7475147e8a0d1b2573c26473244ec44ce4/conmon", None, None, None),
    ("podman-container-tools/podman, a pod with cgroupfs",
     "/libpod_parent/ddf44d54b520f0b4469fcd01c3155ca49e6911dc2175471eb3a7b789187a7a89", None, None, None),
    ("containers/qm",
     "/QM.slice/qm.service/libpod-payload-00de006493bc970788d6c830beb494a58a9a2847a5eda200812d3a8b4e214814/system.slice/dbus-broker.service",
     Some(Podman), Some("00de006493bc970788d6c830beb494a58a9a2847a5eda200812d3a8b4e214814"), None),
    // LXC, LXD and Incus
    ("lxc/lxc#2782, payload", "/lxc.payload/c1/init.scope", Some(Lxc), Some("c1"), None),
    ("canonical/lxd#8811", "/lxc.payload.f1", Some(Lxc), Some("f1"), None),
    ("opensvc/opensvc#408", "/lxc.payload.mail/system.slice/postfix.service", Some(Lxc), Some("mail"), None),
    ("canonical/lxd#11716", "/lxc.monitor.busybox", None, None, None),
    ("canonical/lxd#5603", "/lxc/web/ns/init.scope", Some(Lxc), Some("web"), None),
    ("containers/crun#678, podman in LXC",
     "/lxc.payload.ci/machine.slice/libpod-2521e906f0a0c758c3a7dc4fd68c197e32e96abb4b36807d0b0ede6d014a7c24.scope/container",
     Some(Lxc), Some("ci"), None),
    // systemd-nspawn
    ("systemd/systemd#18104", "/machine.slice/machine-deb.scope/payload/system.slice/ssh.service", Some(Nspawn), Some("deb"), None),
    ("systemd/systemd#4181", r"/machine.slice/systemd-nspawn@dev\x2dweb.service/payload", Some(Nspawn), Some(r"dev\x2dweb"), None),
    ("libvirt, a virtual machine", r"/machine.slice/machine-qemu\x2d18\x2dtest10.scope/libvirt/vcpu0", None, None, None),
    // Nodes that are containers
    ("parca-dev/parca-agent, kind with systemd",
     "/docker/7e844a947116714d8576372366bde54cd4bb15a62d732437781b41a6fec56ccc/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod1c5d0bde_130b_4784_a547_f45e619f2514.slice/cri-containerd-bd6fe092f10330edc4ad6e283948c2ef1a455af0b5063b90b2b37d3d850d6690.scope",
     Some(Docker), Some("7e844a947116714d8576372366bde54cd4bb15a62d732437781b41a6fec56ccc"), None),
    ("kind, its own daemons",
     "/system.slice/docker-fbc411e743aa89de421746b3fc92e4fa475d0f2dc92967fb39c2f78574799701.scope/kubelet.slice/kubelet.service",
     Some(Docker), Some("fbc411e743aa89de421746b3fc92e4fa475d0f2dc92967fb39c2f78574799701"), None),
    ("spiffe/spire k8s_test.go, kind with cgroupfs",
     "/docker/93529524695bb00d91c1f6dba692ea8d3550c3b94fb2463af7bc9ec82f992d26/kubepods/besteffort/poda2830d0d-b0f0-4ff0-81b5-0ee4e299cf80/09bc3d7ade839efec32b6bec4ec79d099027a668ddba043083ec21d3c3b8f1e6",
     Some(Docker), Some("93529524695bb00d91c1f6dba692ea8d3550c3b94fb2463af7bc9ec82f992d26"), None),
    ("kubernetes/minikube#11280, CRI-O in Docker",
     "/docker/d6701ec289c56e4391acb11d07474b3139466857a305490575508a8b7a9fcf22/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod2ca4a155_3599_498d_bb9d_4446693fa3ea.slice/crio-0ba8ac17e4e7a31fb82279503552fe94e64bab4745bf6fd2ff231e7c8ca8bed0.scope",
     Some(Docker), Some("d6701ec289c56e4391acb11d07474b3139466857a305490575508a8b7a9fcf22"), None),
    ("kubernetes/test-infra#37440, Docker in a pod",
     "/kubepods.slice/kubepods-pod87a18a64_b74a_454a_b10b_a4a36059d0a3.slice/cri-containerd-c3bff63004020bec1fc8ca3e517cabf95535ef60c5a4a19b146753a714c92ce2.scope/dind/docker/9207737cd20ff309d023da579d810f84ffb7d9bcdebb4b527ba26d14160f1bf8",
     Some(Containerd), Some("c3bff63004020bec1fc8ca3e517cabf95535ef60c5a4a19b146753a714c92ce2"), Some("87a18a64-b74a-454a-b10b-a4a36059d0a3")),
    // Made by whoever is in the outer container
    ("a pod and its container below another one",
     "/system.slice/docker-611a8d133d2c636e777745e4dbb1d5866a068fe0f6cc87033e52fe139fca5ba1.scope/kubepods/pod095e82d2-713c-467a-a18a-cbb50a075296/6d1234da0f5aa7fa0ccae4c7d2d109929eb9a81694e6357bcd4547ab3985911b",
     Some(Docker), Some("611a8d133d2c636e777745e4dbb1d5866a068fe0f6cc87033e52fe139fca5ba1"), None),
    // From another cgroup namespace
    ("spiffe/spire k8s_test.go",
     "/../../../burstable/pod095e82d2-713c-467a-a18a-cbb50a075296/6d1234da0f5aa7fa0ccae4c7d2d109929eb9a81694e6357bcd4547ab3985911b",
     None, Some("6d1234da0f5aa7fa0ccae4c7d2d109929eb9a81694e6357bcd4547ab3985911b"), Some("095e82d2-713c-467a-a18a-cbb50a075296")),
    ("spiffe/spire k8s_test.go, KubeEdge",
     "/../crio-45490e76e0878aaa4d9808f7d2eefba37f093c3efbba9838b6d8ab804d9bd814.scope",
     Some(CriO), Some("45490e76e0878aaa4d9808f7d2eefba37f093c3efbba9838b6d8ab804d9bd814"), None),
    // Amazon ECS
    ("open-telemetry/opentelemetry-js-contrib#2855",
     "/ecs/c23e5f76c09d438aa1824ca4058bdcab/c23e5f76c09d438aa1824ca4058bdcab-1234678",
     None, Some("c23e5f76c09d438aa1824ca4058bdcab-1234678"), None),
    ("monitoringartist/zabbix-docker-monitoring#85, a task alone",
     "/ecs/48cb34f5-cd39-4d59-9bb9-89f3c1611afd", None, None, None),
    // No container
    ("spiffe/spire k8s_test.go, a pod from a file, and no container",
     "/kubepods/pod2732ca68f6358eba7703fb6f82a25c94", None, None, Some("2732ca68f6358eba7703fb6f82a25c94")),
    ("systemd, a mount of a container",
     "/system.slice/run-containerd-io.containerd.runtime.v2.task-k8s.io-41ebb90fa201393b1c686f53533c8dcc803e582a42e7d9d962da2652550e32c4-rootfs.mount",
     None, None, None),
    ("systemd, a session", "/user.slice/user-0.slice/session-4.scope", None, None, None),
    ("the root", "/", None, None, None),
    ("nothing", "", None, None, None),
];

#[test]
fn paths_name_containers_and_pods() {
    assert!(PATHS.len() >= 30);
    for &(from, path, runtime, container, pod_uid) in PATHS {
        let origin = Origin::from_cgroup(path.as_bytes());
        let found = origin.container.map(String::from_utf8_lossy);
        let uid = origin.pod_uid.map(|uid| uid.to_string());
        let found = (origin.runtime, found.as_deref(), uid.as_deref());
        assert_eq!(found, (runtime, container, pod_uid), "{from}: {path}");
    }
}

#[test]
fn machines_have_their_plain_names() {
    for (path, machine) in [
        ("/machine.slice/machine-deb.scope", Some("deb")),
        (
            r"/machine.slice/systemd-nspawn@dev\x2dweb.service/payload",
            Some("dev-web"),
        ),
        (
            r"/machine.slice/machine-qemu\x2d1\x2dvps.scope",
            Some("qemu-1-vps"),
        ),
        (r"/machine.slice/machine-a\x2.scope", Some(r"a\x2")),
        ("/machine.slice/machine-.scope", None),
        ("/system.slice/machine-deb.scope", None),
        ("/lxc/a/machine.slice/machine-deb.scope", None),
    ] {
        let origin = Origin::from_cgroup(path.as_bytes());
        let found = origin.machine.as_deref().map(String::from_utf8_lossy);
        assert_eq!(found.as_deref(), machine, "{path}");
    }
}

#[test]
fn units_and_slices_are_those_of_the_host() {
    let path = b"/system.slice/docker.service/a.scope";
    let origin = Origin::from_cgroup(path);
    assert_eq!(origin.unit, Some(b"docker.service".as_slice()));
    assert_eq!(origin.slice, b"system.slice");
}
